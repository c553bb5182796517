"""The first look at a fetched page: its main text, its blocks, and whether to believe it.

A false anomaly keeps a good page out of the index, so nothing is suspected on one piece of evidence: the
page must say little, its title or heading must say just what is suspected, and a sentence or the structure of
the page must agree. A page with code, tables or much text is never suspected.

    suspected        text up to  named so       and
    soft 404         800         yes            a sentence to its visitor, or hardly any text
                     250         no headings    a sentence to its visitor at the beginning
    server error     200         yes            a sentence, or hardly any text
    login wall       800         yes            a field for a password or a name in plain view, or a
                                                sentence and a button
    consent wall     2,500       yes            a sentence and a button to agree
    parked           1,200       yes            a sentence, or the page's own host in its name
    server default   4,000       yes            a sentence
    needs JavaScript 300         –              no text but that, hardly any text around it, and scripts

"Named so": a part of its title or its first heading says just that, and its h1 says nothing else.
"""

import re
from dataclasses import dataclass
from html import unescape
from urllib.parse import urlsplit

from lxml import etree

from tidemark.adapters.decoding import decode
from tidemark.adapters.inspection import phrases
from tidemark.adapters.inspection.phrases import Phrases, plain
from tidemark.adapters.partition.html.boilerplate import blocks_of, drop_blocks, is_hidden
from tidemark.adapters.partition.html.cleaner import CleanPage, clean_html
from tidemark.adapters.partition.html.tree import (
    HEADINGS,
    heading_text,
    parse_page,
    text_of,
    words_of,
)
from tidemark.domain.documents import Anomaly, Inspection, RawDocument
from tidemark.domain.errors import DocumentError
from tidemark.domain.hashing import digest_text

# What an inspector asks of a page beside its main text: title, headings, forms, buttons, mount points.

_TITLE = re.compile(r"<title[^>]*>(.*?)</title", re.IGNORECASE | re.DOTALL)
_PARTS = re.compile(r"\s+[-|–—·•:»«/\\~]+\s+|\s*[|»·]\s*|\s*::\s*")
_ASIDE = frozenset({"header", "nav", "footer", "aside", "dialog"})
_MOUNTS = frozenset(
    {"root", "app", "__next", "__nuxt", "__docusaurus", "___gatsby", "svelte", "app-root", "react-root",
     "application", "main-app", "mount", "q-app", "__layout", "ember-app", "app-mount"}
)  # fmt: skip
_SHELL_TAGS = frozenset({"app-root", "ng-app", "my-app", "flt-glass-pane"})


@dataclass(frozen=True, slots=True)
class Look:
    """A page as its inspector sees it.

    text: the main text, white space folded; headings: its headings. title: the parts of ``<title>``. h1: the
    first h1, "" without one. documents: it has what an error page or a wall
    has not: code, a table of data, many headings.
    """

    text: str
    headings: tuple[str, ...]
    title: tuple[str, ...]
    h1: str
    documents: bool

    @property
    def names(self) -> tuple[str, ...]:
        """What the page calls itself, in the title and in its first heading."""
        return (*self.title, *filter(None, dict.fromkeys((self.h1, *self.headings[:1]))))

    def named(self, what: Phrases) -> str:
        """Which of its names is just this, "" when none is."""
        return next((name for name in self.names if what.names(name)), "")

    def says(self, what: Phrases) -> str:
        """What it says so beside its names: a heading and its echo in the text are one piece of evidence."""
        text = self.text
        for heading in self.headings:
            if what.names(heading):
                text = text.replace(heading, " ", 1)
        return what.says(text)

    @property
    def about_else(self) -> str:
        """Its h1, unless that is the name of the site."""
        return "" if self.h1 in self.title and len(self.title) > 1 else self.h1


@dataclass(frozen=True, slots=True)
class Structure:
    """What only the whole page tells, before it was cleaned.

    password, account: whether there is a field for a password, or for a name, in plain view of the page.
    buttons: texts of what can be pressed. noscript: what browsers without JavaScript show. scripts: how many.
    mount: the name of an empty element that a script would fill, "" without one. visible: characters of text.
    """

    password: bool
    account: bool
    buttons: tuple[str, ...]
    noscript: str
    scripts: int
    mount: str
    visible: int


def main_text(page: CleanPage) -> str:
    """The text of a cleaned page, white space folded, with a space between its parts."""
    return " ".join(" ".join(map(str, page.root.itertext())).split())


def look_at(page: CleanPage, html: str, text: str) -> Look:
    """The first look, at what the cleaner left; ``text`` is its ``main_text``."""
    found = _TITLE.search(html)
    declared = " ".join(unescape(found[1]).split()) if found else ""
    parts = [declared, *_PARTS.split(declared)] if declared else []
    headings = [h for h in page.root.iter(*HEADINGS) if text_of(h)]
    first = next((h for h in headings if h.tag == "h1"), None)
    return Look(
        text,
        tuple(" ".join(heading_text(h).split()) for h in headings),
        tuple(dict.fromkeys(part.strip() for part in parts if part.strip())),
        heading_text(first) if first is not None else "",
        len(headings) > 4 or next(page.root.iter("pre", "table", "dl", "math"), None) is not None,
    )


def structure_of(html: str, name: str) -> Structure:
    """A second look, at the whole page; takes as long as reading it again. Raises ``DocumentError``."""
    document = parse_page(html, name)
    noscript = " ".join(text_of(e) for e in document.iter("noscript"))
    scripts = sum(1 for _ in document.iter("script"))
    etree.strip_elements(document, "script", "style", "noscript", "template", with_tail=False)
    body = document.find(".//body")
    body = document if body is None else body
    fields = [e for e in body.iter("input") if _in_plain_view(e)]
    kinds = {(e.get("type") or "text").lower() for e in fields}
    names = {word for e in fields for word in _field_words(e)}
    buttons = [
        (e.get("value") or e.get("aria-label") or "") if e.tag == "input" else text_of(e)
        for e in body.iter("button", "a", "input", "summary")
        if e.tag != "input" or (e.get("type") or "").lower() in {"submit", "button"}
    ]
    return Structure(
        password="password" in kinds,
        account="email" in kinds
        or bool(names & {"user", "username", "login", "loginfmt", "email", "identifier"}),
        buttons=tuple(b for b in buttons if b and len(b) <= 60),
        noscript=noscript,
        scripts=scripts,
        mount=_mount(body),
        visible=len(text_of(body)),
    )


def _in_plain_view(element: etree._Element) -> bool:
    """Not in a header or a dialog, where many sites offer to log in beside what they say."""
    if (element.get("type") or "").lower() == "hidden":
        return False
    return not any(
        outer.tag in _ASIDE
        or is_hidden(outer)
        or outer.get("role") in {"dialog", "banner", "navigation"}
        or words_of(outer.get("class") or "")
        & {"modal", "dropdown", "popup", "offcanvas", "drawer"}
        for outer in (element, *element.iterancestors())
    )


def _field_words(element: etree._Element) -> frozenset[str]:
    return words_of(f"{element.get('name') or ''} {element.get('id') or ''}")


def _mount(body: etree._Element) -> str:
    for element in body.iter("div", "main", "section", *_SHELL_TAGS):
        name = element.get("id") or element.tag
        if (name.lower() in _MOUNTS or element.tag in _SHELL_TAGS) and len(text_of(element)) <= 40:
            return name
    return ""


# The phrases of pages that stand in the way: logins, consents, parked domains, empty shells.

LOGIN = Phrases(
    headings=r"""
        (?:please )?(?:user |member |customer |admin |account )?(?:<sign in>|login)(?: page| form)?
            (?: (?:to|with|into|for)(?: (?:to|your|the|an?|my|our|continue|account))+(?: [\w.-]+){0,3})?
        (?:<sign in>|login) (?:to|with|using|via) [\w .-]{2,40}
        (?:authentication|login|sign-?in|authorization) (?:is )?required
        welcome(?: back)?
        you (?:must|need to|have to) (?:be logged in|log in|sign in)(?: to [\w ]{2,40})?
        single sign-?on
        (?:bitte )?(?:anmelden|einloggen|anmeldung|melden sie sich an|login)(?: erforderlich)?
        bei (?:ihrem|deinem) konto anmelden
        im konto anmelden
        (?:se connecter|connexion|connectez-vous|identifiez-vous|s'identifier)(?: à votre compte)?
        (?:iniciar sesi[oó]n|inicie sesi[oó]n|inicia sesi[oó]n|acceder|identif[ií]quese)(?: en (?:tu|
            su) cuenta)?
        (?:entrar|iniciar sessão|fazer login|faça login|acesse sua conta|acessar)
        (?:accedi|accesso|effettua l'accesso|entra)(?: al tuo account)?
        (?:inloggen|aanmelden|meld je aan|log in)(?: op je account)?
        (?:ログイン|サインイン)(?:してください|画面|ページ)?
        (?:请)?(?:登录|登入|登錄|用户登录|帐号登录)
    """,
    sentences=r"""
        (?:please )?(?:<sign in>) to (?:continue|your|access|view|see|proceed|read)[\w ]{0,30}
        you (?:must|need to|have to) (?:be (?:logged|signed) in|log in|sign in)[\w ]{0,30}
        please (?:log|sign) in
        forgot(?:ten)?(?: your)? password
        don't have an account
        no account\? create one
        can't access your account
        keep me (?:signed|logged) in
        remember me
        need help signing in
        log in to your account
        enter your (?:username|email)
        passwort vergessen
        angemeldet bleiben
        bitte melden sie sich an
        noch kein konto
        mot de passe oublié
        rester connecté
        veuillez vous (?:connecter|identifier)
        se souvenir de moi
        olvidado (?:tu|su|la) contraseña
        mantener(?:me)? (?:la )?sesión
        recordarme
        esqueceu (?:a|sua) senha
        lembrar(?:-me| de mim)
        manter sessão
        password dimenticata
        ricordami
        resta collegato
        wachtwoord vergeten
        aangemeld blijven
        onthoud mij
        パスワードを(?:お)?忘れ
        ログインしてください
        ログイン状態を保持
        忘记密码
        忘記密碼
        记住我
        请先?登录
    """,
)

CONSENT = Phrases(
    headings=r"""
        before you continue(?: to [\w .]{2,40})?
        (?:we (?:value|respect|care about)|we and our partners value) your privacy
        (?:your )?(?:privacy|cookies?|consent) (?:settings|choices|preferences|consent|options|notice)
        your privacy(?: matters)?
        cookie consent
        (?:this|our) (?:site|website) uses cookies
        we use cookies
        cookies
        manage (?:your )?(?:cookies|consent|privacy)
        your choices regarding cookies(?: on this site)?
        privacy
        bevor sie (?:fortfahren|weitergehen)[\w ]{0,40}
        wir (?:schätzen|respektieren) ihre privatsphäre
        ihre privatsphäre(?: ist uns wichtig)?
        datenschutz-?einstellungen
        cookie-?einstellungen
        wir (?:verwenden|nutzen) cookies
        avant de (?:continuer|poursuivre)[\w ]{0,40}
        (?:nous respectons )?votre vie privée
        (?:gestion|paramètres) des cookies
        nous utilisons des cookies
        antes de continuar[\w ]{0,40}
        (?:valoramos|respetamos) tu privacidad
        tu privacidad
        configuración de cookies
        (?:usamos|utilizamos) cookies
        (?:sua|a sua) privacidade
        prima di continuare[\w ]{0,40}
        la tua privacy
        voordat je verdergaat[\w ]{0,40}
        (?:je|uw) privacy
        (?:wij|we) gebruiken cookies
        impostazioni (?:dei )?cookie
        cookie-?instellingen
        cookie(?:の使用|に関する設定|の設定)(?:について)?
        プライバシー設定
        (?:隐私|cookie)(?:设置|偏好)
        我们使用 ?cookie
    """,
    sentences=r"""
        (?:we|our partners|this (?:site|website))[^.]{0,80} (?:use|store|uses|process)[^.]{0,60}
            (?:cookies|personal data)
        (?:accept|consent to|agree to|reject|manage)[^.]{0,30} cookies
        by clicking[^.]{0,60}(?:accept|agree|consent)
        (?:verwenden|nutzen|setzen)[^.]{0,40} cookies
        cookies (?:zu|akzeptieren|ablehnen|verwenden)
        (?:utilisons|utilise|stocke)[^.]{0,60} (?:des )?cookies
        (?:accepter|refuser)[^.]{0,20} cookies
        (?:utilizamos|usamos|utiliza|usa)[^.]{0,60} cookies
        (?:aceptar|rechazar|aceitar|recusar)[^.]{0,20} cookies
        (?:utilizziamo|utilizza|gebruiken|gebruikt)[^.]{0,60} cookies?
        (?:accetta|rifiuta|accepteer)[^.]{0,20} cookie
        cookie ?(?:を使用|の使用に同意|を受け入れ)
        (?:使用|接受|同意)[^。]{0,10}cookie
    """,
)

AGREE = re.compile(
    r"(?:i )?(?:accept|agree|consent)(?: all| to all| & close| and close| and continue)?(?: cookies)?|"
    r"(?:allow|accept) (?:all )?(?:the )?cookies|allow all|got it|"
    r"(?:alle )?(?:cookies )?(?:akzeptieren|annehmen|zulassen)|"
    r"(?:ich stimme zu|zustimmen|einverstanden|alle akzeptieren)"
    r"(?: und weiter)?|(?:tout )?accepter(?: tout| et fermer| et continuer)?|j'accepte|"
    r"aceptar(?: todo| todas| y cerrar| y continuar)?|acepto|aceitar(?: tudo| todos)?|concordo|"
    r"accetta(?: tutto| tutti| e continua)?|accetto|(?:alles )?accepteren|akkoord|"
    r"(?:すべて)?(?:同意する|許可|受け入れる)|(?:全部)?(?:接受|同意)(?:全部|所有)?"
)

PARKED = Phrases(
    headings=r"""
        [\w.-]+\.[a-z]{2,} (?:is (?:for sale|parked|available for purchase)|domain (?:is )?for sale|
            - buy this domain)
        (?:this |the )?(?:domain|website|domain name)(?: name)?(?: [\w.-]+)? (?:is |may be |has )?
            (?:for sale|parked|expired|available(?: for (?:sale|purchase))?|been registered|suspended|
            been suspended)
        (?:buy this|premium|parked) domain(?: name)?(?: for sale)?
        domain (?:parking|for sale|parked|expired)
        account suspended
        this account has been suspended
        future home of [\w. -]+
        (?:diese )?domain (?:steht|ist) zu[mr] verkauf
        (?:diese )?domain (?:ist )?(?:geparkt|registriert|zu verkaufen)
        domaine? (?:à vendre|en vente|parqué|réservé)
        dominio (?:en venta|in vendita|aparcado)
        domínio à venda
        domein te koop
        このドメインは(?:売り出し中|販売中)(?:です)?
        (?:该|此)?域名(?:出售|正在出售|转让)
    """,
    sentences=r"""
        (?:this|the) domain(?: name)?[^.]{0,60} (?:is|may be|could be) (?:for sale|available for (?:sale|
            purchase)|parked)
        (?:buy|purchase|inquire about|make an offer (?:on|for)) this domain
        domain (?:owner|registrar)
        (?:this|the) (?:web ?page|domain|site) is parked
        parked (?:free|by|courtesy)
        get this domain
        (?:this )?domain (?:name )?(?:has )?expired
        related (?:searches|links)
        contact your hosting provider
        renew (?:it|this domain|now)
        domain[^.]{0,40} (?:kaufen|zum verkauf|erwerben)
        acheter ce (?:nom de )?domaine
        comprar este dominio
        comprar este domínio
        acquista questo dominio
        koop dit domein
        ドメイン[^。]{0,20}購入
        购买(?:该|此)域名
    """,
)

PLACEHOLDER = Phrases(
    headings=r"""
        welcome to (?:nginx|openresty|caddy|apache)[\w !]{0,30}
        apache2? (?:\w+ ){0,2}default page(?: it works)?
        it works
        (?:test page for the )?(?:apache|nginx) (?:http )?server(?: test page)?[\w ]{0,40}
        iis(?: windows(?: server)?| ?\d+)?
        internet information services
        default (?:web ?site|web) page
        index of
        web server's default page
        site (?:not (?:found|configured)|is working)
        http server test page
        default parallels plesk page
        web server is (?:running|working)
    """,
    sentences=r"""
        if you (?:see|can read) this page,? (?:the|it means)
        is successfully installed and working
        this is the default (?:welcome|web|index|server) ?page
        further configuration is required
        used to test the (?:correct|proper) operation
        you (?:may|should) (?:now add|replace this file)
        no (?:content|website) has been (?:added|uploaded|configured)
        replace this (?:file|page)
    """,
)

JAVASCRIPT = Phrases(
    headings=r"""
        (?:just a moment|loading|please wait|one moment(?: please)?|checking your browser|
            javascript (?:is )?(?:required|disabled)|please enable javascript)
    """,
    sentences=r"""
        (?:enable|turn on|activate|switch on|allow)[^.]{0,30} javascript
        (?:requires?|needs?|without|doesn't work (?:properly )?without|have to have) javascript
        javascript[^.]{0,60}(?:enabled|disabled|required|turned off|not (?:supported|available))
        javascript[^.]{0,60}(?:aktivieren|aktiviert|deaktiviert|benötigt|erforderlich)
        aktivieren sie[^.]{0,30} javascript
        (?:activer|activez)[^.]{0,30} javascript
        javascript[^.]{0,40}(?:désactivé|activé|nécessaire)
        (?:habilit\w+|activ\w+|ativ\w+)[^.]{0,30} javascript
        javascript[^.]{0,40}(?:deshabilitado|habilitado|desativado|desactivado)
        (?:abilit\w+|attiv\w+)[^.]{0,30} javascript
        javascript[^.]{0,40}(?:disabilitato|inschakelen|uitgeschakeld)
        (?:schakel)[^.]{0,30} javascript
        javascript ?(?:を有効|が無効|が必要)
        (?:启用|开启|啟用|需要) ?javascript
        javascript ?(?:已禁用|未启用)
    """,
)

_PAGES = frozenset({"text/html", "application/xhtml+xml"})
_HARDLY = 90
"""Characters: a heading and a line, no more."""
_ECHO = 40
"""Characters beside headings: a server's signature, a link home."""
_LONGEST_WALL = 4000

Verdict = tuple[Anomaly, str]


class HtmlInspector:
    """Looks at HTML pages (see ``ports.PageInspector``)."""

    def __init__(self, max_depth: int = 150) -> None:
        """``max_depth`` bounds the nesting of elements, as it does for the partitioner."""
        self._max_depth = max_depth

    def inspect(
        self, raw: RawDocument, boilerplate: frozenset[int] = frozenset()
    ) -> Inspection | None:
        """Look at a page; None for what is no web page, or one that cannot be read.

        ``boilerplate``: blocks of the site that are no part of its text; they are among ``blocks`` still.
        """
        if raw.media_type not in _PAGES:
            return None
        try:
            html = decode(raw.content, raw.charset, raw.uri)
            page = clean_html(html, raw.uri, self._max_depth)
            # Told before they are dropped: what is boilerplate is learned again from them.
            blocks = blocks_of(page.root)
            if boilerplate:
                drop_blocks(page.root, boilerplate)
            text = main_text(page)
            verdict = None
            if len(text) <= _LONGEST_WALL:
                verdict = judge(look_at(page, html, text), html, raw.uri)
        except DocumentError:
            return None  # the partitioner refuses it too, and says why
        anomaly, detail = verdict or (None, "")
        return Inspection(digest_text(text), len(text), blocks, anomaly, detail)


def _measured(raw: RawDocument) -> Inspection | None:
    """Of a text that is no page, how much it says: nothing in it tells whether to believe it."""
    if not raw.media_type.startswith("text/"):
        return None
    try:
        text = " ".join(decode(raw.content, raw.charset, raw.uri).split())
    except DocumentError:
        return None  # the partitioner refuses it too, and says why
    return Inspection(digest_text(text), len(text))


def judge(look: Look, html: str, uri: str) -> Verdict | None:
    """Whether a page with little text is to be suspected, and on which evidence. Raises ``DocumentError``."""
    if look.documents:
        return None
    for rule in (_parked, _not_found, _server_error):
        verdict = rule(look, uri)
        if verdict is not None:
            return verdict
    if not _may_be_a_wall(look, html):
        return None
    structure = structure_of(html, uri)
    return (
        _needs_javascript(look, structure) or _login(look, structure) or _consent(look, structure)
    )


def _quoted(named: str, said: str, *more: str) -> str:
    """Evidence in one line: what the page is named, what it says, what else counted."""
    parts = [
        f"named “{named[:80]}”" if named else "",
        f"says “{said[:100]}”" if said else "",
        *more,
    ]
    return ", ".join(filter(None, parts))


def _length(look: Look) -> str:
    return f"{len(look.text)} characters of text"


def _not_found(look: Look, uri: str) -> Verdict | None:
    if len(look.text) > 800:
        return None
    named, said = look.named(phrases.NOT_FOUND), look.says(phrases.NOT_FOUND)
    if look.about_else and not phrases.NOT_FOUND.names(look.about_else):
        return None
    rest = len(look.text) - sum(map(len, look.headings))
    plainly = any(_is_plain(name) for name in look.names if phrases.NOT_FOUND.names(name))
    to_visitor = said and ("you" in said or plainly)
    begins = said and len(look.text) <= 250 and said in plain(look.text)[:150]
    if (named and (to_visitor or (plainly and rest <= _ECHO))) or (begins and not look.headings):
        return Anomaly.SOFT_404, _quoted(named, said, _length(look))
    return None


def _is_plain(name: str) -> bool:
    """Whether it can mean nothing else: "Error" and "Not found" also head entries of a reference."""
    text = plain(name)
    words = set(text.split())
    return bool(words & {"page", "seite", "pagina"} or re.search(r"\d", text)) or not text.isascii()


def _server_error(look: Look, uri: str) -> Verdict | None:
    if len(look.text) > 200:
        return None
    named, said = look.named(phrases.SERVER_ERROR), look.says(phrases.SERVER_ERROR)
    numbered = any(char.isdigit() for char in named)
    if look.about_else and not phrases.SERVER_ERROR.names(look.about_else):
        return None
    if named and (said or (numbered and len(look.text) <= _HARDLY)):
        return Anomaly.SOFT_404, _quoted(named, said, _length(look))
    return None


def _parked(look: Look, uri: str) -> Verdict | None:
    named, said = look.named(PARKED), look.says(PARKED)
    if named and len(look.text) <= 1200:
        host = (urlsplit(uri).hostname or "").removeprefix("www.")
        own = bool(host) and host in plain(named)
        if own or said or len(look.text) <= _HARDLY:
            return Anomaly.PARKED, _quoted(named, said, _length(look))
    named, said = look.named(PLACEHOLDER), look.says(PLACEHOLDER)
    if named and said:
        return Anomaly.PARKED, _quoted(named, said, "a server's default page")
    return None


def _may_be_a_wall(look: Look, html: str) -> bool:
    """Whether a second look pays."""
    return (
        len(look.text) <= 60
        or bool(look.named(LOGIN) or look.named(CONSENT))
        or (len(look.text) <= 300 and "javascript" in plain(look.text))
    )


def _needs_javascript(look: Look, structure: Structure) -> Verdict | None:
    if len(look.text) > 300 or structure.scripts == 0 or structure.visible > 600:
        return None
    shown = look.says(JAVASCRIPT)
    hidden = JAVASCRIPT.says(structure.noscript)
    counts = (f"{structure.scripts} scripts", _length(look))
    if shown and not (look.headings and len(look.text) > 120):
        return Anomaly.NEEDS_JAVASCRIPT, _quoted("", shown, *counts)
    empty = not look.text or JAVASCRIPT.names(look.text)
    if empty and (hidden or structure.mount):
        where = f"an empty element “{structure.mount}”" if structure.mount else ""
        return Anomaly.NEEDS_JAVASCRIPT, _quoted("", hidden, where, *counts)
    return None


def _login(look: Look, structure: Structure) -> Verdict | None:
    if len(look.text) > 800:
        return None
    named = look.named(LOGIN)
    if not named or (look.about_else and not LOGIN.names(look.about_else)):
        return None
    said = look.says(LOGIN)
    pressed = next((b for b in structure.buttons if LOGIN.names(b)), "")
    if structure.password:
        return Anomaly.LOGIN_WALL, _quoted(named, said, "a field for a password", _length(look))
    if structure.account and (pressed or said or len(look.text) <= 200):
        return Anomaly.LOGIN_WALL, _quoted(named, said, "a field for an account", _length(look))
    if said and pressed and len(look.text) <= 300:
        return Anomaly.LOGIN_WALL, _quoted(named, said, f"a button “{pressed}”", _length(look))
    return None


def _consent(look: Look, structure: Structure) -> Verdict | None:
    if len(look.text) > 2500:
        return None
    named, said = look.named(CONSENT), look.says(CONSENT)
    pressed = next((b for b in structure.buttons if AGREE.fullmatch(plain(b).strip(" !."))), "")
    if look.about_else and not CONSENT.names(look.about_else):
        return None
    if named and said and pressed:
        return Anomaly.CONSENT_WALL, _quoted(named, said, f"a button “{pressed}”", _length(look))
    return None
