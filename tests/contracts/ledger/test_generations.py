"""The generations and the audits, in every Ledger."""

from datetime import datetime

from ledger_cases import NOON, later

from tidemark.domain.records import AuditRecord, GenerationRecord, GenerationStatus
from tidemark.ports.ledger import Ledger


def test_generations_come_by_number(ledger: Ledger) -> None:
    def generation(name: str, number: int, status: str = "building") -> GenerationRecord:
        return GenerationRecord(name, number, "embed-1", 384, GenerationStatus(status), NOON)

    for number in (10, 2, 1):
        ledger.generations.save(generation("main", number))
    ledger.generations.save(generation("other", 3))
    ledger.generations.save(generation("main", 2, "live"))
    assert ledger.generations.all("main") == [
        generation("main", 1),
        generation("main", 2, "live"),
        generation("main", 10),
    ]
    assert ledger.generations.all("nobody") == []


def audit(source: str | None, when: datetime, missing: int = 0) -> AuditRecord:
    left = {"missing_points": missing} if missing else None
    return AuditRecord(source, when, {"missing_points": missing, "checked": 9}, missing, left)


def test_audits_come_latest_first_and_those_of_all_sources_are_of_each(ledger: Ledger) -> None:
    made = [
        audit("a", later(1)),
        audit(None, later(2), 3),
        audit("b", later(3)),
        audit("a", later(3)),
    ]
    for record in made:
        ledger.generations.save_audit(record)
    assert ledger.generations.audits() == made[::-1]
    assert ledger.generations.audits(limit=2) == made[:1:-1]
    assert ledger.generations.audits("a") == [made[3], made[1], made[0]]
    assert ledger.generations.audits("a", limit=2) == [made[3], made[1]]
    assert ledger.generations.audits("nobody") == [made[1]]


def test_old_audits_are_dropped_and_the_latest_of_each_source_stays(ledger: Ledger) -> None:
    for minute in range(5):
        ledger.generations.save_audit(audit("a", later(minute)))
    ledger.generations.save_audit(audit(None, later(0)))
    ledger.generations.save_audit(audit(None, later(1)))
    ledger.generations.save_audit(audit("b", later(0)))
    assert ledger.generations.drop_audits(later(2)) == 3
    left = [(a.source, a.audited_at) for a in ledger.generations.audits()]
    assert sorted(left, key=str) == sorted(
        [("a", later(m)) for m in (2, 3, 4)] + [(None, later(1)), ("b", later(0))], key=str
    )
    assert ledger.generations.drop_audits(later(999)) == 2
    assert ledger.generations.drop_audits(later(999)) == 0
    assert len(ledger.generations.audits()) == 3
