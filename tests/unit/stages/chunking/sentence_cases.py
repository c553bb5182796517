"""Texts and their sentences: each case is its sentences in order, and what stands between them."""

CASES: list[tuple[str, list[str]]] = []


def _spaced(*sentences: str) -> None:
    CASES.append((" ", list(sentences)))


def _dense(*sentences: str) -> None:
    CASES.append(("", list(sentences)))


def _lines(*sentences: str) -> None:
    CASES.append(("\n", list(sentences)))


def _paragraphs(*sentences: str) -> None:
    CASES.append(("\n\n", list(sentences)))


# Plain ends.
_spaced("The gate is shut.", "Nobody may pass.", "Why not?", "Wait here!", "It opens soon.")
_spaced("It was late.", "3 boats came in.")
_spaced("The price is 5.", "The rest is free.")
_spaced("He said no.", "Then he left.")
_spaced("She sat.", "He stood.")
_spaced("The museum shows art.", "The pier does not.")
_spaced("He saw the sun.", "It was red.")
_spaced("It grew by 12%.", "Costs fell.")
_spaced("It costs $7.50.", "That is much.")
_spaced("iPads are sold here.", "iPhones are not.")
_spaced("What?!", "Nobody told me.")
_spaced("Really?!", "Yes.")
_spaced("Stop!!!", "You must not.")
_spaced("The war ended in 1945.", "Peace came.")
_spaced("It was she and I.", "We left.")
_spaced("That was plan B.", "The first one failed.")
_spaced("Bring ropes, lamps, etc.", "Leave the rest.")

# Abbreviations, initials, titles.
_spaced("Dr. Smith went to Washington D.C. on Jan. 5th.")
_spaced("Mr. and Mrs. Hale met Prof. Lund at St. Mary's.", "They talked.")
_spaced("The U.S. President spoke.", "Nobody listened.")
_spaced("He lives in the U.S.", "The climate suits him.")
_spaced("They meet at 5 p.m. on Monday.", "Bring coffee.")
_spaced("The shop shuts at 5 p.m.", "It opens again at 9 a.m.", "We wait.")
_spaced("See No. 5 and Fig. 3 for this.", "The rest is clear.")
_spaced("Use a rope, e.g. this one.", "It holds.")
_spaced("It is dear, i.e. more than before.", "Still we buy.")
_spaced("J. R. R. Tolkien wrote it.", "It sold well.")
_spaced("Harry S. Truman signed.", "It was law.")
_spaced("The book is by J. A. Smith.", "It is long.")
_spaced("J.R.R. Tolkien and C.S. Lewis met.", "They argued.")
_spaced("Acme Inc. makes nails.", "Bolt Ltd. and Nut Co. sell them.")
_spaced("He works for Acme Inc.", "The firm makes nails.")
_spaced("Yahoo! Inc. was sold.", "Nobody wept.")
_spaced("He works at Yahoo! and likes it.")
_spaced("Smith v. Jones was decided.", "Brown vs. White was not.")
_spaced("Compare Lund et al. 2019 with this.", "They differ.")
_spaced("This was shown by Lund et al.", "The method is simple.")
_spaced("Turn left on Elm St. and go on.", "It is near.")
_spaced("He holds a Ph.D. in law.", "She holds an M.A. in art.")
_spaced("Gen. Lee and Sen. Hart came on Tues. at noon.", "It rained.")
_spaced("See pp. 3–7 of vol. 2, ch. 4, sec. 1.", "Then stop.")
_spaced("It weighs approx. 3 kg, max. 4 kg.", "Lift it.")
_spaced("Call ext. 45 or tel. 555 123.", "Ask for the keeper.")
_spaced("The E.U. Commission met the U.N. Council.", "Nothing came of it.")
_spaced("He was born c. 1900 in Mt. Vernon.", "He died there.")
_spaced("Sammy Davis Jr. sang.", "All wept.")

# Numbers, versions, addresses, names of files.
_spaced("Version 3.11.2 is out.", "It fixes 2.5 bugs a day.")
_spaced("We use Python 3.11.", "Older ones fail.")
_spaced("Open https://example.com/a.b?c=d.", "Then wait.")
_spaced("Write to help@example.com or see www.example.org.", "We answer.")
_spaced("For details see config.yaml.", "Then restart.")
_spaced("Edit main.py, setup.cfg and README.md first.", "Commit them.")
_spaced("The address is 10.0.0.1.", "Ping it.")
_spaced("Use Node.js or the .NET runtime.", "Both work.")
_spaced("Call `os.path. Join` as shown.", "It returns.")
_spaced("Run `make. All the things` now.", "Then rest.")
_spaced("The value is 1.000,50 euros.", "It rose.")

# Ellipses.
_spaced("Well ... it depends.", "We shall see.")
_spaced("He paused… and went on.", "All waited.")
_spaced("I never meant that....", "She left the shop.")
_spaced("I thought . . . perhaps not.", "Let us go.")

# Quotes and brackets.
_spaced("“He left.”", "She stayed.")
_spaced('He said "Go."', "Then he left.")
_spaced('"Where is it?" he asked.', "Nobody knew.")
_spaced("“Stop!” she cried.", "He stopped.")
_spaced("'It is late.'", "They slept.")
_spaced("»Geh weg.«", "Er ging.")
_spaced("„Das stimmt.“", "Alle nickten.")
_spaced("« Partez. »", "Il partit.")
_spaced("(This is an aside.)", "This is not.")
_spaced("He teaches (He was an engineer before.) at the school.", "He likes it.")
_spaced("The wall (see Fig. 3. It is old.) holds.", "The gate does not.")
_spaced("The pump failed [see report. Page 3] twice.", "It was replaced.")
_spaced("It rose (by 3 m).", "Then it fell.")
_spaced("This was shown before.[3]", "Others disagree.[4][5]", "We do not.")
_spaced("**Mind the gap.**", "It is wide.")

_spaced("It was removed. (6014, 6015)")
_spaced("It works. 😎", "It is quick.")

# Enumerations.
_spaced("1. First remove the cover.")
_spaced("a) Remove the cover.", "b) Clean it.", "c) Put it back.")
_spaced("1. Open it.", "2. Close it.", "3. Go.")
_spaced("2.1. The buyer pays.", "2.2. The seller delivers.")
_spaced("§ 3. Abs. 2 gilt.", "Der Rest nicht.")
_spaced("Siehe § 5 Abs. 3 Satz 2 und Art. 4.", "Das genügt.")
_spaced("(a) The buyer pays.", "(b) The seller delivers.")
_spaced("iv. The lease ends.")
_spaced("1.) The lid is opened.")
_spaced("See Exp. 2 and N°. 4 of Dr. med. Lang.", "They agree.")
_lines("- Open the lid", "- Fill the tank", "- Close the lid")
_lines("Bring these:", "• ropes", "• lamps")
_lines("1. Open the lid", "2. Fill the tank")
_lines("* one thing", "* another thing")
_lines("Q: Is it open?", "A: Yes, daily.", "Q: Until when?", "A: Until six.")
_lines("User: hello there", "Keeper: good day")
_lines("Frage: Ist offen?", "Antwort: Ja")
_lines("Flowers of Spring, 1923", "Songs", "Lamps and Ropes of the North, 1931", "Nine Tales")
_spaced("This line is wrapped\nin the middle of prose.", "So is\nthis one.")
_spaced("The tower stood\nin Paris\nand fell.", "It\nwas rebuilt.")
_paragraphs("A heading", "And a paragraph under it")
_paragraphs("No stop here", "Nor here", "Nor there.")

# German.
_spaced("Das gilt z. B. bei Regen.", "Sonst nicht.")
_spaced("Das gilt z.B. Bei Regen nicht.")
_spaced("Am 3. Oktober 1990 war es soweit.", "Alle feierten.")
_spaced("Er wohnt im 3. Stock der Hauptstr. 5.", "Dort ist es laut.")
_spaced("Der 2. Weltkrieg endete 1945.", "Es war Mai.")
_spaced("Die Fa. Huber u. a. liefern ca. 30 Stück bzw. Paletten.", "Das reicht.")
_spaced("Hr. Dr. Weiß und Fr. Prof. Lang kamen.", "Sie sprachen.")
_spaced("Vgl. S. 12 ff. des Bd. 3.", "Dort steht es.")
_spaced("Es gibt Äpfel, Birnen usw.", "Die Preise sind niedrig.")
_spaced("Das kostet inkl. MwSt. 30 Euro, d. h. zu viel.", "Wir gehen.")
# French.
_spaced("M. Dupont et Mme. Leroy sont là.", "Ils attendent.")
_spaced("Voir p. ex. la p. 12 et l'art. 3.", "Tout y est.")
_spaced("C'est fini !", "Vraiment ?", "Oui.")
_spaced("Il coûte env. 3 euros.", "Elle paie.")
# Spanish.
_spaced("El Sr. García y la Sra. López viven en EE. UU. desde 1990.", "Son felices.")
_spaced("¿Dónde está?", "¡Aquí!", "Vale.")
_spaced("Véase la pág. 5 y el núm. 3.", "Es claro.")
_spaced("Vive en la Avda. Mayor, 3.", "Es cara.")
# Italian.
_spaced("Il dott. Rossi e il sig. Bianchi sono qui.", "Parlano.")
_spaced("Cfr. pag. 3 e art. 5.", "Basta così.")
# Portuguese.
_spaced("O Sr. Silva e a Dra. Costa chegaram.", "Eles falam.")
_spaced("Ver pág. 7, n. 3.", "É simples.")
# Dutch.
_spaced("Dhr. de Vries en mevr. Bakker komen a.s. maandag.", "Zij wachten.")
_spaced("Neem bijv. brood, kaas enz. mee.", "Het is ver.")
_spaced("Zie blz. 4 en nr. 6.", "Dat is alles.")

# Chinese, Japanese, Korean.
_dense("一是红的。", "二是蓝的！", "三呢？", "四没有")
_dense("他说：“我走了。”", "她留下了。")
_dense("“我走了。”他说。", "她留下了。")
_dense("他来了吗?", "没有!", "我们等。")
_dense("圆周率是３．１４。", "够了。")
_dense("一は赤い。", "二は青い！", "三は？")
_dense("彼は「行く。戻らない。」と言った。", "彼女は残った。")
_dense("「行く。」", "彼女は残った。")
_dense("これは本（高い。重い。）です。", "安くない。")
_spaced("그는 갔다.", "그녀는 남았다.", "정말?")
_spaced("3.1절은 중요하다.", "모두 안다.")
# India and the south-east.
_spaced("यह पहला है।", "यह दूसरा है।", "क्या?")
_spaced("এটি প্রথম।", "এটি দ্বিতীয়।")
_spaced("ਇਹ ਪਹਿਲਾ ਹੈ।", "ਇਹ ਦੂਜਾ ਹੈ।")
_spaced("நான் வந்தேன்.", "அவன் போனான்.")
_spaced("ခင်ဗျား လာပါ။", "ကျွန်တော် သွားမယ်။")
_spaced("ខ្ញុំទៅផ្សារ។", "គាត់នៅផ្ទះ។")
_spaced("བོད་ཡིག་འདི་བཟང་།", "དེ་ཡང་ཡག་པོ་རེད།")
_spaced("ผมไปตลาด เธออยู่บ้าน")
# Right to left.
_spaced("هل هذا صحيح؟", "نعم، هذا صحيح.", "شكرا!")
_spaced("یہ پہلا ہے۔", "وہ دوسرا ہے۔")
_spaced("این اول است.", "آن دوم است؟", "بله.")
_spaced("זה ראשון.", "זה שני?", "כן.")
# Others.
_spaced("Սա առաջինն է։", "Սա երկրորդն է։")
_spaced("ይህ አንደኛ ነው።", "ይህ ሁለተኛ ነው፧", "አዎ።")
_spaced("Это первое.", "Это второе?", "Да!")
_spaced("Τι είναι αυτό;", "Είναι πλοίο.", "Ωραία.")
_spaced("В г. Москве живёт А. С. Иванов.", "Он стар.")

# Tokenised text, with its marks set apart.
_spaced(
    "It sold well in Japan .",
    "Released in January 2011 , it was the third of its kind .",
    "Few knew it .",
)
_spaced('They followed the " Nameless " , a unit .', "The story runs on .")
_spaced('He said , " I go . "', "She stayed .")
_spaced("The tower ( built c . 1900 . It leans . ) still stands .", "It is old .")
_spaced("St. Edmund 's stands in the U.S. state of Maine .", "It is small .")
_spaced("Is it true ?", "Nobody knows .")
# Text without capitals.
_spaced(
    "the credit expires on december 31, 2017.",
    "a deferred tax asset of $16 million was set up.",
    "it was reduced by 3.5%.",
    "the rest stays.",
)
_spaced("see note no. 5 and acme inc. and others.", "the company pays approx. 3 million.")
_spaced("sales in the u.s. rose.", "sales elsewhere, e.g. in asia, fell.")
_spaced("losses expire in 2027.", "14. debt long-term debt consisted of the following.")
_spaced("hello there, dear keeper.", "how are you today?", "we are fine.")
# Small letters after a stop elsewhere.
_spaced("The firm approx. doubled its staff.", "It then fell.")
_spaced("He came late, unexp. but welcome.", "All cheered.")

# What has no sentence end of its own.
_spaced("one two three")
_spaced("The end")

# Abbreviations of German notices and laws.
_spaced(
    "Fahrzeuge über 3,5 t zul. Gesamtmasse sind ausgeschlossen.",
    "Es gilt Art. 5 Nr. 2 der Satzung.",
)
_spaced(
    "Die Bearbeitung dauert ca. zwei Wochen, in der Ferienzeit ggf. Monate.", "Bitte warten Sie."
)
_spaced("Pflegedienste, Betriebe usw. erhalten drei Bescheinigungen.", "Andere nicht.")
_spaced("Das gilt nach § 3 Abs. 2 der Satzung.", "Mehr steht in Abs. 3.")
_spaced("Bürgeramt Mitte, Rathausstr. 1, 2. Stock, Zi. B 14.", "Geöffnet ist von 8 bis 12 Uhr.")
_spaced("Nennen Sie die Gesch. Nr. 14 und die lfd. Nummer.", "Danke.")
_spaced("Der stellv. Leiter und das zust. Amt helfen.", "Auch der Vors. Richter.")
_spaced("Die gesetzl. Frist und die versch. Gebühren stehen in Anl. 3.", "Sie sind neu.")
_spaced("Er hält am Bhf. Nord.", "Dort steigt sie aus.")
_spaced("Laut BGBl. I S. 1234 i. V. m. Satz 2 gilt das.", "Das ist neu.")
