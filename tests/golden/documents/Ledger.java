package org.example.ledger;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;

/** Entries in the order in which they were made; nothing is ever removed. */
public final class Ledger {
    /** One line of the ledger. */
    public record Entry(String account, BigDecimal amount, String reason) {
        public Entry {
            if (amount.signum() == 0) {
                throw new IllegalArgumentException("an entry of nothing");
            }
        }
    }

    private final List<Entry> entries = new ArrayList<>();

    /** Add two entries that cancel each other out. */
    public synchronized void move(String from, String to, BigDecimal amount, String reason) {
        entries.add(new Entry(from, amount.negate(), reason));
        entries.add(new Entry(to, amount, reason));
    }

    /** The sum of all entries of an account; zero when there are none. */
    public synchronized BigDecimal balance(String account) {
        return entries.stream()
                .filter(entry -> entry.account().equals(account))
                .map(Entry::amount)
                .reduce(BigDecimal.ZERO, BigDecimal::add);
    }

    public static void main(String[] args) {
        Ledger ledger = new Ledger();
        ledger.move("till", "bank", new BigDecimal("120.50"), "takings of Monday");
        System.out.println(ledger.balance("bank"));
    }
}
