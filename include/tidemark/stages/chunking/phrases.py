"""How texts begin that lean on what stands before them, and how labels, clauses and questions look.

English, German, French, Spanish, Italian, Portuguese and Dutch; the words for an exception and for a turn
in a dozen more. Patterns are matched at the start of a text.
"""

import re

# They restrict or except what was just said: apart from it they mislead.
_RESTRICTIONS = r"""
(?:this|that|these|those|it|they|the above|the foregoing|the same|such \w+)
 (?:\w+ ){0,3}?(?:do(?:es)? not|don't|doesn't|will not|won't|shall not|may not|must not|cannot|can't)
 (?:\w+ )?(?:apply|affect|include|extend|cover|limit|prevent|mean|hold|count)|
(?:this|that|these|those|it|they) (?:also |only |still )?(?:appl(?:y|ies) only|(?:is|are) subject to)|
(?:this|that|these|those) (?:\w+ ){1,3}(?:do(?:es)? not|is not|are not|may not|only) appl|
the (?:\w+ ){1,6}?(?:do(?:es)? not|don't|doesn't|shall not|will not) apply\b|
except(?:ions?|ing)?\b|unless\b|provided (?:that|,)|excluded\b|exclud(?:es|ing)\b|notwithstanding\b|
subject to (?:this|that|the (?:above|foregoing))|not (?:applicable|included)\b|
the (?:only )?exceptions? (?:is|are|to this)|save (?:for|that|as)\b|other than\b|
(?:das|dies|diese \w+|sie) (?:gilt|gelten) (?:jedoch |aber )?(?:nur|nicht)|
(?:hiervon|davon) (?:ausgenommen|unberührt)|
(?:dies|das|diese) (?:\w+ ){1,3}gilt nicht|
gilt nicht\b|ausgenommen\b|ausnahmen?\b|es sei denn|außer\b|sofern nicht|
(?:cela|ceci|cette \w+|ces \w+) ne (?:s'applique|s'appliquent|concerne|concernent) pas|
sauf\b|exceptions?\b|
à moins que|à l'exception|(?:esto|ello|est[ao]s? \w+) no (?:se )?aplican?|excepto\b|
excepci(?:ón|ones)\b|salvo\b|a menos que|(?:questo|ciò) non si applica|eccetto\b|eccezion[ei]\b|
a meno che|isto não se aplica|exceto\b|exceç(?:ão|ões)\b|dit geldt (?:niet|alleen)|behalve\b|
uitzondering(?:en)?\b|tenzij\b|
(?:gäller|gælder|gjelder) (?:dock )?(?:inte|ikke)|
det(?:ta|te) (?:gäller|gælder|gjelder) (?:dock )?(?:inte|ikke)|undantag|unntak|undtag|
(?:to )?nie dotyczy|z wyjątkiem|chyba że|toto? neplatí|toto? se nevztahuje|neplatí pro|
s výjimkou|bu \w+ (?:için )?(?:uygulanmaz|geçerli değil)|
istisna|исключени|за исключением|кроме|если только|
это (?:\w+ )?не (?:относится|распространяется|применяется|касается)|
виняток|крім|за винятком|εκτός|εξαιρ|למעט|אלא אם|إلا|باستثناء|ما عدا|
و?لا (?:ينطبق|تنطبق|يسري|تسري|يشمل|تشمل)|
सिवाय|अपवाद|जब तक|(?:यह|ये) (?:\S+ ){0,3}लागू नहीं|ยกเว้น|เว้นแต่|ไม่รวม|ไม่ใช้กับ|
除非|例外|不适用|不適用|[上前本此该該](?:\w{0,8})不[适適]用|除.{1,24}外|但(?:不包括|.{1,24}除外)|
ただし|但し|例外|この限りで|.{1,20}(?:を除く|を除き|は除く|には適用(?:されない|しない|されません|しません))|
다만|단,|예외|.{1,20}(?:제외|적용되지 않|적용하지 않)
"""

# They turn against what was just said, or stand under its condition.
_TURNS = r"""
however\b|but\b|otherwise\b|nevertheless\b|nonetheless\b|instead,|yet,? |
in (?:that|this|such|which|these|those) (?:cases?|events?)\b|if (?:so|not|that|this)\b|even so|
on the other hand|by contrast|in contrast|conversely|still,|only then|in doing so|please note|
after (?:that|this)\b|from then on|until then|before that\b|note(?: that|:)|n\.?b\.?[:.]? |
jedoch\b|aber\b|allerdings\b|andernfalls\b|sonst\b|dagegen\b|
hingegen\b|in (?:diesem|dem|solchen|diesen) f(?:all|ällen)|bitte beachten|beachten sie|dennoch\b|
toutefois\b|cependant\b|mais\b|sinon\b|dans ce(?:s)? cas|en revanche|notez que|sin embargo|pero\b|
de lo contrario|en (?:ese|este|tal) caso|no obstante|tenga en cuenta|tuttavia\b|però\b|altrimenti\b|
in (?:questo|quel|tal) caso|no entanto|porém\b|caso contrário|nesse caso|neste caso|echter\b|maar\b|
in dat geval|in dit geval|daarna\b|danach\b|bis dahin|après cela|después de (?:eso|esto)|
dopo di che|depois disso|
emellertid|annars\b|ellers\b|jednak\b|natomiast|w przeciwnym razie|však\b|ovšem|jinak\b|
ancak\b|fakat\b|aksi (?:halde|takdirde)|однако\b|но |иначе\b|в противном случае|
в (?:этом|таком) случае|
однак\b|але |інакше\b|ωστόσο|όμως|αλλά|διαφορετικά|אולם|אבל|אך |אחרת|لكن|ولكن|غير أن|
ومع ذلك|وإلا|في هذه الحالة|
लेकिन|परंतु|परन्तु|किंतु|किन्तु|मगर|हालाँकि|हालांकि|अन्यथा|ऐसे में|इस स्थिति में|แต่(?!ละ)|
อย่างไรก็ตาม|มิฉะนั้น|ทั้งนี้|ในกรณี(?:นี้|ดังกล่าว)|
但|不过|不過|然而|否则|否則|此时|在此情况下|しかし|なお|もっとも|その場合|さもなければ|そうでない場合|
그러나|하지만|그렇지 않으면|이 경우
"""

# They speak of what was just named, and are read with it.
_ANAPHORA = r"""
(?:this|these|those|that|it|they|both|neither|such|he|she) (?:\w+ )??
(?:is|are|was|were|has|have|had|can|could|will|would|should|must|may|might|does|do|did|applies|apply|means|mean|includes?|includ\w+|allows?|makes?|works?|
happens?|gives?|lets?|helps?|takes?|needs?|shows?|ensures?|requires?|causes?|prevents?|provides?|
contains?|returns?|ensures?|depends?|leads?|follows?)\b|as (?:a result|such|above|before)|
for (?:this|that|these) (?:reasons?|purposes?)|for (?:example|instance)|
(?:thus|hence|therefore|consequently|accordingly|similarly|likewise|furthermore|moreover|also|
then|afterwards?|in addition|additionally|finally|meanwhile),? |here,? |
the (?:former|latter|same|above)\b|in other words|that is,|
(?:dies|das|diese|dieser|dieses|er|sie|es) (?:ist|sind|war|waren|wird|werden|hat|haben|kann|
können|muss|soll)\b|
(?:deshalb|daher|dadurch|damit|dabei|dazu|somit|außerdem|zudem|danach|beispielsweise|zum beispiel) |
(?:cela|ceci|celui-ci|celle-ci|ils?|elles?|ce) (?:est|sont|était|a|ont|peut|peuvent|doit|doivent)\b|
(?:ainsi|donc|ensuite|de plus|par exemple|c'est)\b|
(?:esto|eso|ello|est[oa]s|él|ella) (?:es|son|fue|era|tiene|puede|pueden|debe|significa)\b|
(?:por (?:lo tanto|eso|ejemplo)|además|así|luego)\b|
(?:questo|ciò|essi|esso) (?:è|sono|ha|può|deve)\b|(?:quindi|inoltre|per esempio)\b|
(?:isto|isso|ele|ela) (?:é|são|tem|pode|deve)\b|(?:portanto|além disso|por exemplo)\b|
(?:dit|dat|deze|het|hij|zij) (?:is|zijn|was|heeft|kan|moet|wordt)\b|
(?:daarom|bovendien|daarna|bijvoorbeeld)\b
"""

_LEADING = r"[\s\"'“‘«„(\[*_•–-]*"


_ENUMERATED = r"(?:\(?(?:[a-z]|[ivx]{1,4}|\d{1,2})[.)]\s+|\d{1,2}(?:\.\d{1,2}){1,3}\.?\s+)?"


def _starting(alternatives: str, number: str = "") -> re.Pattern[str]:
    return re.compile(rf"{_LEADING}{number}(?:{alternatives.replace(chr(10), '')})", re.IGNORECASE)


RESTRICTION = _starting(_RESTRICTIONS, _ENUMERATED)
TURN = _starting(_TURNS)
ANAPHOR = _starting(_ANAPHORA)
EXEMPT = re.compile(
    r" (?:(?:is|are) (?:exempt\w*|excluded|excepted|(?:an|no|the) exception)\b"
    r"|(?:ist|sind) (?:davon |hiervon )?(?:ausgenommen|ausgeschlossen|befreit)\b"
    r"|(?:est|sont) (?:exempté|exclu|dispensé)|(?:está|están|queda|quedan) (?:exent|exclu|exceptuad)"
    r"|(?:è|sono) (?:esclus|esent))"
)
"""Searched for near the start: what is exempt leans on the rule before it."""
DENIAL = re.compile(
    r"[^.!?]{2,80}\b(?:is|are|was|were|do|does|did|has|have|can|may|will|must)(?: not|n't|n’t)\.?\s*",
    re.IGNORECASE,
)
"""A whole sentence that leaves out what is denied ("The ground floor is not.")."""

NOTE_LABEL = re.compile(
    r"[*_\s]*(?:notes?|warnings?|caution|tips?|important|hint|danger|attention|info|"
    r"example|remarks?|see also|"
    r"hinweis(?:e)?|achtung|warnung|wichtig|beispiel|anmerkung|tipp|"
    r"remarque|avertissement|astuce|exemple|nota|aviso|advertencia|consejo|ejemplo|importante|"
    r"attenzione|avvertenza|esempio|exemplo|atenção|opmerking|waarschuwing|let op|voorbeeld)"
    r"[*_\s]*[:：.!]?[*_\s]*",
    re.IGNORECASE,
)
CLAUSE_NUMBER = re.compile(
    r"(?:§+\s*\d+\w?|(?:\d{1,3}\.)+\d{0,3}|\d{1,3}\)|\((?:\d{1,3}|[a-z]{1,2}|[ivx]{1,5})\)|[a-z]\)"
    r"|(?:article|section|clause|schedule|annex|appendix|artikel|abschnitt|absatz|anlage|artículo|sección|cláusula|"
    r"articolo|sezione|artigo|seção|chapter|kapitel|chapitre|capítulo|hoofdstuk)\s+(?:\d{1,3}(?:\.\d{1,3})*|[ivxlc]{1,6}|[a-z])\.?)",
    re.IGNORECASE,
)
CAPTION_NUMBER = re.compile(
    r"\W*(?:table|figure|fig\.|listing|example|equation|chart|plate|box|exhibit|"
    r"tabelle|tab\.|abbildung|abb\.|bild|beispiel|tableau|illustration|tabla|figura|ilustración|cuadro|tabella|"
    r"tabela|quadro|afbeelding|afb\.|tabel|表|図|图)\s*(?:\d{1,3}|[A-Z]?\d{1,2}|[ivx]{1,5}\b)[\w.-]{0,6}\s*(?:[.:：–—|-]|\s[A-ZÀ-Þ(]|$)",
    re.IGNORECASE,
)
UNNUMBERED_CAPTION = re.compile(
    r"\W*(?:table|figure|fig\.|tabelle|abbildung|abb\.|tableau|illustration|tabla|figura|tabella|tabela|afbeelding|"
    r"tabel|表|図|图)\s*(?:[:：]|\s[–—]\s)",
    re.IGNORECASE,
)
CLAUSE_BEGIN = re.compile(
    r"\s*(?:(?P<main>§+\s*\d+\w?|\d{1,3}(?:\.\d{1,3})+\.?|\d{1,3}[.)]"
    r"|(?:article|section|clause|artikel|abschnitt|artículo|cláusula|articolo|artigo)\s+(?:\d{1,3}(?:\.\d{1,3})*|[ivxlc]{1,6})\b[.:]?)"
    r"|\((?:\d{1,3}|[a-z]{1,2}|[ivx]{1,5})\)|[a-z][.)])\s",
    re.IGNORECASE,
)
"""How a numbered clause begins; ``main`` is there when it is no lettered item of one."""

QUESTION_LABEL = re.compile(
    r"[*_\s]*(?:(?:question|frage|pregunta|domanda|pergunta|vraag|问题|質問)\s?\d{0,3}\s?[:：.)]"
    r"|(?:[qfpdv]|問|问)\s?\d{0,3}\s?[:：])\s?",
    re.IGNORECASE,
)
ANSWER_LABEL = re.compile(
    r"[*_\s]*(?:(?:answer|antwort|réponse|respuesta|risposta|resposta|antwoord|回答)\s?\d{0,3}\s?[:：.)]"
    r"|(?:a|r|ans|答)\s?\d{0,3}\s?[:：])\s?",
    re.IGNORECASE,
)
