"""The phrases by which a page gives itself away that is not there, in nine languages.

A ``Phrases`` has two uses. ``names`` asks whether a heading or a part of the title says just that, so that
"Page not found" counts and "Customise the page not found" does not. ``says`` looks for a sentence that only a
visitor of such a page is told, and gives it for the evidence.
"""

import re

_APOSTROPHES = str.maketrans({"’": "'", "‘": "'", "\xa0": " "})
_AROUND = " \t\n!.,…:;?¿¡|·•—–-‑«»\"'()[]#。！？、…🙁😕😢🤔"
_SHORTHAND = {
    "<page>": (
        r"(?:the |this |that |your )?(?:requested |web ?)?"
        r"(?:page|url|file|document|article|content|resource|address)(?: or (?:file|resource|directory))?"
        r"(?: (?:that )?you(?:'re| are| were|'ve| have)? (?:looking for|requested|visited|"
        r"(?:tried|trying) to (?:reach|access|visit|view)))?"
    ),
    "<missing>": (
        r" (?:was |is |has |have |could |can |does |do |may |might |doesn't |isn't |wasn't |couldn't |can't |"
        r"cannot |no longer |not |be |been |seem to |appear to |either |probably )*"
        r"(?:found|exists?|available|missing|unavailable|gone|removed|deleted|moved|located)"
        r"(?: (?:here|any ?more|on this (?:site|server)))?"
    ),
    "<what you sought>": (
        r"(?:page|url|file|document|article|content|resource|address)(?: or (?:file|resource|directory))?"
        r"(?: (?:that )?you(?:'re| are| were|'ve| have)? (?:looking for|requested|tried to \w+|trying to \w+|"
        r"visited|followed))?"
    ),
    "<sign in>": r"(?:sign|log)(?:ging|ing)?[ -]?(?:in|on)",
}


class Phrases:
    """Whole headings and sentences: regular expressions over folded, lower-case text.

    One alternative a line; a line that is indented further goes on with the one above it. Names in angle
    brackets stand for what many of them have.
    """

    def __init__(self, headings: str, sentences: str) -> None:
        one = _alternatives(headings)
        self._heading = re.compile(rf"(?:{one})(?:[\s!.,…:;|·—–-]+(?:{one}))*")
        self._sentence = re.compile(_alternatives(sentences))

    def names(self, heading: str) -> bool:
        """Whether a heading says this and nothing else."""
        text = plain(heading).strip(_AROUND)
        return bool(text) and len(text) <= 120 and self._heading.fullmatch(text) is not None

    def says(self, text: str) -> str:
        """What says it in a text, the longest when there is more, "" when there is nothing."""
        found = (match[0].strip() for match in self._sentence.finditer(plain(text)))
        return max(found, key=len, default="")


def plain(text: str) -> str:
    """As the expressions here expect it."""
    return " ".join(text.translate(_APOSTROPHES).casefold().split())


def _alternatives(lines: str) -> str:
    rows = [row for row in lines.splitlines() if row.strip()]
    outer = min(len(row) - len(row.lstrip()) for row in rows)
    begins = (f"\n{row.strip()}" if row[outer] != " " else row.strip() for row in rows)
    expression = "|".join("".join(begins).strip().split("\n"))
    for name, stands_for in _SHORTHAND.items():
        expression = expression.replace(name, stands_for)
    return expression


NOT_FOUND = Phrases(
    headings=r"""
        (?:http )?(?:status )?(?:error )?(?:code )?40[4]
        (?:server )?error
        oops
        sorry
        whoops
        uh[ -]?oh
        hmm+
        ouch
        we're sorry
        oh no
        yikes
        lost
        (?:http )?error 40[034]
        40[034] error
        fehler 404
        erreur 404
        error 404
        erro 404
        errore 404
        fout 404
        (?:page |file |url )?not found
        nothing (?:was )?found(?: here)?
        there's nothing here
        dead (?:link|end)
        <page><missing>
        (?:we|i) (?:can't|cannot|can not|couldn't|could not|can't seem to|were unable to|
            are unable to) find (?:that|this|the|your|what)(?: (?:page|content|document))?(?: you
            (?:'re| are| were) looking for)?
        (?:page|file|document) (?:missing|unavailable)
        file or directory not found
        (?:this is )?not the (?:web )?page you(?:'re| are) looking for
        (?:die |diese )?(?:angeforderte |gesuchte )?seite (?:wurde |konnte |ist )?
            (?:leider )?nicht (?:gefunden(?: werden)?|verfügbar|vorhanden)
        nicht gefunden
        (?:die|diese) seite (?:existiert|gibt es)(?: leider)? nicht(?: mehr)?
        leider
        (?:la |cette )?page (?:demandée )?(?:est )?(?:introuvable|non trouvée|inexistante)
        (?:la|cette) page (?:demandée )?n'(?:existe (?:pas|plus)|a pas été trouvée)
        désolé
        (?:la |esta )?página (?:solicitada )?(?:no (?:se )?(?:ha sido )?(?:encontrada|existe|disponible)|
            no encontrada)
        no se (?:ha )?encontr(?:ó|ado) la página
        lo sentimos
        (?:a |esta )?página (?:solicitada )?não (?:foi )?(?:encontrada|existe)
        desculpe
        (?:la |questa )?pagina (?:richiesta )?non (?:è stata )?(?:trovata|esiste|disponibile)
        spiacenti
        (?:de |deze )?(?:gevraagde )?pagina (?:is |werd |kon )?(?:niet (?:gevonden(?: worden)?|
            beschikbaar)|bestaat niet(?: meer)?)
        helaas
        (?:お探しの|指定された|この|該当の)?ページ(?:は|が)?(?:見つかりません(?:でした)?|存在しません)
        404エラー
        (?:抱歉[，,]?)?(?:您(?:访问|要找|请求)的)?(?:该|此)?(?:页面|网页|頁面|網頁)(?:未找到|不存在|没有找到|找不到|
            已被删除)
        (?:找不到|未找到|沒有找到)(?:该|此|這個)?(?:页面|网页|頁面|網頁)
    """,
    sentences=r"""
        <what you sought> (?:was |is |has |could |can |does |may |might |doesn't |isn't |wasn't |
            couldn't |can't |cannot |not |be |have |been |no longer )*(?:not (?:be )?found|(?:couldn't|
            can't|cannot) be found|not exist|doesn't exist|no longer (?:exists|available)|
            isn't available|been (?:re)?moved|been removed|been deleted|moved or deleted)
        requested url [^ ]{0,200} ?was not found on this server
        (?:can't|cannot|couldn't|could not|unable to|can't seem to) find (?:the|that|this|your)
            (?: requested)? page
        (?:can't|cannot|couldn't|could not) find (?:what|anything) you(?:'re| are| were) looking for
        it looks like nothing was found at this location
        nothing (?:was )?found at this (?:location|address)
        there(?:'s| is) (?:nothing|no page) (?:here|at this (?:address|location))
        (?:seite|adresse)[^.!]{0,60} (?:nicht gefunden|existiert (?:leider )?nicht|nicht (?:mehr )?
            (?:verfügbar|vorhanden)|gibt es (?:leider )?nicht)
        page[^.!]{0,60} (?:n'existe (?:pas|plus)|est introuvable|n'a pas (?:pu être|été) trouvée|
            a été (?:supprimée|déplacée))
        page que vous (?:recherchez|cherchez|demandez)
        página[^.!]{0,60} (?:no existe|no se (?:ha )?(?:encontr|pudo encontrar)|no está disponible|
            não existe|não foi encontrada|não está disponível)
        pagina[^.!]{0,60} (?:non esiste|non è stata trovata|non è (?:più )?disponibile|bestaat niet|
            niet gevonden|niet (?:meer )?beschikbaar)
        ページ(?:は|が)[^。]{0,30}(?:見つかりません|存在しません|削除され|移動)
        (?:页面|网页|頁面|網頁)[^。]{0,20}(?:不存在|未找到|找不到|已被?删除|已被?移除)
        找不到[^。]{0,20}(?:页面|頁面)
    """,
)

SERVER_ERROR = Phrases(
    headings=r"""
        (?:http )?(?:error )?(?:400|401|403|410|429|500|502|503|504)
        (?:bad request|forbidden|access denied|gone|unauthorized|authorization required|
            internal server error|server error|bad gateway|service (?:temporarily )?unavailable|
            gateway time-?out|too many requests|temporarily unavailable|nginx|error)
    """,
    sentences=r"""
        you don't have permission to access
        the server encountered an (?:internal|unexpected|error)
        the server is temporarily unable to
        server unable to read
        an error occurred (?:on the server|while processing)
        please (?:try again|come back) (?:later|in a few)
        (?:nginx|apache|openresty|cloudflare)(?:/[\d.]+)?(?: \(\w+\))?$
    """,
)
