# ruff: noqa: E501, ISC004  (markup as it is served, in lines as long as they are there)
"""Pages to be suspected, and honest ones that look like them, written for the tests of the inspector."""

from tidemark.domain.documents import Anomaly

NAV = (
    "<header class='site-header'><a href='/'>Harbour</a><nav><ul>"
    + "".join(f"<li><a href='/{n}'>Chapter {n} of the guide</a></li>" for n in range(30))
    + "</ul></nav></header>"
)
FOOT = "<footer><p>© Harbour board. All rights reserved.</p><a href='/imprint'>Imprint</a></footer>"
SCRIPTS = "<script src='/a.js'></script><script>window.x = 1</script>"
PROSE = "The gauge measures the height of the water every second and sends a mean each minute. "


def page(title: str, body: str, head: str = "", lang: str = "en") -> str:
    return (
        f"<!doctype html><html lang='{lang}'><head><meta charset='utf-8'><title>{title}</title>{head}</head>"
        f"<body>{body}</body></html>"
    )


def framed(title: str, main: str) -> str:
    """Within the boilerplate of a site."""
    return page(title, f"{NAV}<main>{main}</main>{FOOT}{SCRIPTS}")


_S = Anomaly
ANOMALIES: dict[str, tuple[Anomaly, str]] = {
    "a page of nginx for what is not there": (
        _S.SOFT_404,
        "<html><head><title>404 Not Found</title></head><body><center><h1>404 Not Found</h1></center><hr>"
        "<center>nginx/1.24.0</center></body></html>",
    ),
    "a page of Apache for what is not there": (
        _S.SOFT_404,
        "<html><head><title>404 Not Found</title></head><body><h1>Not Found</h1><p>The requested URL was not "
        "found on this server.</p><hr><address>Apache/2.4 Server at a.example Port 80</address></body></html>",
    ),
    "a page of IIS for what is not there": (
        _S.SOFT_404,
        page(
            "404 - File or directory not found.",
            "<div id='header'><h1>Server Error</h1></div><div id='content'><div><fieldset><h2>404 - File or "
            "directory not found.</h2><h3>The resource you are looking for might have been removed, had its name "
            "changed, or is temporarily unavailable.</h3></fieldset></div></div>",
        ),
    ),
    "a page of Next.js": (
        _S.SOFT_404,
        page(
            "404: This page could not be found.",
            "<div id='__next'><div><h1 class='next-error-h1'>404</h1><div><h2>This page could not be found."
            f"</h2></div></div></div>{SCRIPTS}",
        ),
    ),
    "a single-page application that calls itself by its own name": (
        _S.SOFT_404,
        page(
            "Harbour App",
            f"<div id='root'><div class='result'><div>404</div><div>Sorry, the page you visited does not exist."
            f"</div><button>Back Home</button></div></div>{SCRIPTS}",
        ),
    ),
    "a theme of WordPress": (
        _S.SOFT_404,
        framed(
            "Page not found – Harbour",
            "<section class='error-404'><header><h1>Oops! That page can’t be found.</h1></header><div><p>It looks "
            "like nothing was found at this location. Maybe try one of the links below or a search?</p>"
            "<form role='search'><input type='search'></form><h2>Recent Posts</h2><ul><li><a href='/a'>Spring "
            "tide</a></li><li><a href='/b'>Neap tide</a></li></ul></div></section>",
        ),
    ),
    "Material for MkDocs": (
        _S.SOFT_404,
        framed("Harbour", "<article><h1>404 - Not found</h1></article>"),
    ),
    "Docusaurus": (
        _S.SOFT_404,
        framed(
            "Page Not Found | Harbour",
            "<div class='container'><h1>Page Not Found</h1><p>We could not find what you were looking for.</p><p>"
            "Please contact the owner of the site that linked you to the original URL and let them know their "
            "link is broken.</p></div>",
        ),
    ),
    "GitBook": (
        _S.SOFT_404,
        framed(
            "Page not found | Harbour",
            "<h1>Page not found</h1><p>The page you are looking for doesn't exist.</p>",
        ),
    ),
    "MediaWiki without the article": (
        _S.SOFT_404,
        framed(
            "Page not found",
            "<h1>Page not found</h1><p>Sorry, the page you requested was not found.</p>",
        ),
    ),
    "Confluence": (
        _S.SOFT_404,
        framed(
            "Page Not Found - Confluence",
            "<h1>Page Not Found</h1><p>We can't find the page you're looking for. It may have been removed.</p>",
        ),
    ),
    "a German one": (
        _S.SOFT_404,
        framed(
            "Seite nicht gefunden - Hafen",
            "<h1>Seite nicht gefunden</h1><p>Die angeforderte Seite existiert leider nicht oder wurde verschoben.</p>",
        ),
    ),
    "a French one": (
        _S.SOFT_404,
        framed(
            "Page introuvable | Port",
            "<h1>Erreur 404</h1><p>La page que vous recherchez n'existe plus.</p>",
        ),
    ),
    "a Spanish one": (
        _S.SOFT_404,
        framed(
            "Página no encontrada - Puerto",
            "<h1>Página no encontrada</h1><p>La página solicitada no existe.</p>",
        ),
    ),
    "a Portuguese one": (
        _S.SOFT_404,
        framed(
            "Página não encontrada",
            "<h1>Página não encontrada</h1><p>A página que procura não existe.</p>",
        ),
    ),
    "an Italian one": (
        _S.SOFT_404,
        framed("Pagina non trovata", "<h1>Errore 404</h1><p>La pagina richiesta non esiste.</p>"),
    ),
    "a Dutch one": (
        _S.SOFT_404,
        framed(
            "Pagina niet gevonden",
            "<h1>Pagina niet gevonden</h1><p>Deze pagina bestaat niet meer.</p>",
        ),
    ),
    "a Japanese one": (
        _S.SOFT_404,
        framed(
            "ページが見つかりません | 港",
            "<h1>ページが見つかりません</h1><p>お探しのページは削除されたか、移動した可能性があります。</p>",
        ),
    ),
    "a Chinese one": (
        _S.SOFT_404,
        framed("页面不存在 - 港口", "<h1>页面不存在</h1><p>您访问的页面不存在或已被删除。</p>"),
    ),
    "a server's error with the status of success": (
        _S.SOFT_404,
        page(
            "503 Service Temporarily Unavailable",
            "<h1>503 Service Temporarily Unavailable</h1><hr>nginx",
        ),
    ),
    "Keycloak": (
        _S.LOGIN_WALL,
        page(
            "Sign in to harbour",
            "<div class='login-pf-page'><div id='kc-header'><div>Harbour realm</div></div><div><header><h1>Sign in to "
            "your account</h1></header><form id='kc-form-login' method='post'><label>Username or email</label>"
            "<input name='username'><label>Password</label><input type='password' name='password'>"
            "<label><input type='checkbox'>Remember me</label><a href='/f'>Forgot Password?</a>"
            "<input type='submit' value='Sign In'></form></div></div>",
        ),
    ),
    "Okta": (
        _S.LOGIN_WALL,
        page(
            "Harbour - Sign In",
            "<div id='okta-login-container'><main><h2>Sign In</h2><form><label>Username</label>"
            "<input type='text' name='identifier'><span>Keep me signed in</span><input type='submit' value='Next'>"
            "<a href='/help'>Need help signing in?</a></form></main></div><script src='o.js'></script>",
        ),
    ),
    "Azure AD": (
        _S.LOGIN_WALL,
        page(
            "Sign in to your account",
            "<div id='lightbox'><div role='heading' aria-level='1'>Sign in</div><form><input type='email' "
            "name='loginfmt' placeholder='Email, phone, or Skype'><div>No account? <a href='/c'>Create one!</a></div>"
            "<div><a href='/x'>Can’t access your account?</a></div><input type='submit' value='Next'></form></div>"
            "<script src='m.js'></script>",
        ),
    ),
    "Confluence before login": (
        _S.LOGIN_WALL,
        page(
            "Log In - Confluence",
            "<div id='main'><h1>Log in</h1><form name='loginform'><input name='os_username'><input type='password' "
            "name='os_password'><input type='submit' value='Log in'></form><p>Please log in to see this page.</p></div>",
        ),
    ),
    "single sign-on by a button": (
        _S.LOGIN_WALL,
        page(
            "Harbour",
            "<main><h1>Login required</h1><p>You must log in to continue.</p><a href='/sso'>Log in with SSO</a></main>",
        ),
    ),
    "a German login": (
        _S.LOGIN_WALL,
        page(
            "Anmelden | Hafen",
            "<main><h1>Anmelden</h1><form><input name='user'><input type='password'><a href='#'>Passwort vergessen?"
            "</a><button>Anmelden</button></form></main>",
            lang="de",
        ),
    ),
    "a French login": (
        _S.LOGIN_WALL,
        page(
            "Connexion",
            "<h1>Connexion</h1><form><input name='login'><input type='password'><button>Se connecter</button></form>",
        ),
    ),
    "a Japanese login": (
        _S.LOGIN_WALL,
        page(
            "ログイン | 港",
            "<h1>ログイン</h1><form><input name='user'><input type='password'><button>ログイン</button></form>",
        ),
    ),
    "a Chinese login": (
        _S.LOGIN_WALL,
        page(
            "用户登录",
            "<h1>登录</h1><form><input name='user'><input type='password'><button>登录</button></form>",
        ),
    ),
    "a consent page before the page": (
        _S.CONSENT_WALL,
        page(
            "Before you continue",
            "<div><h1>Before you continue to Harbour</h1><p>We use cookies and data to deliver and maintain our "
            "services, to measure engagement, and to show personalised content.</p><form><button>Reject all</button>"
            "</form><form><button>Accept all</button></form><a href='/more'>More options</a></div>",
        ),
    ),
    "OneTrust over everything": (
        _S.CONSENT_WALL,
        page(
            "Harbour",
            "<div id='onetrust-consent-sdk'><div id='onetrust-pc-sdk' role='alertdialog'><h2>We value your privacy"
            "</h2><p>We and our partners store and access information on a device, such as cookies, and process "
            "personal data.</p><button>Manage preferences</button><button>Accept All Cookies</button></div></div>"
            + SCRIPTS,
        ),
    ),
    "a German consent page": (
        _S.CONSENT_WALL,
        page(
            "Ihre Privatsphäre ist uns wichtig",
            "<h1>Wir schätzen Ihre Privatsphäre</h1><p>Wir und unsere Partner verwenden Cookies, um Inhalte zu "
            "personalisieren.</p><button>Alle akzeptieren</button><button>Einstellungen</button>",
        ),
    ),
    "a domain for sale": (
        _S.PARKED,
        page(
            "a.example is for sale",
            "<h1>a.example is for sale</h1><p>This domain may be for sale. Buy this domain now or make an offer.</p>"
            "<ul><li><a href='/1'>Boats</a></li><li><a href='/2'>Ropes</a></li></ul>",
        ),
    ),
    "a parked domain": (
        _S.PARKED,
        page(
            "Parked Domain",
            "<h1>Domain parked</h1><p>This domain is parked free, courtesy of its registrar.</p>",
        ),
    ),
    "a German domain for sale": (
        _S.PARKED,
        page(
            "Domain zu verkaufen",
            "<h1>Diese Domain steht zum Verkauf</h1><p>Sie können die Domain kaufen.</p>",
        ),
    ),
    "a suspended account": (
        _S.PARKED,
        page(
            "Account Suspended",
            "<h1>Account Suspended</h1><p>Contact your hosting provider for more information.</p>",
        ),
    ),
    "the default page of nginx": (
        _S.PARKED,
        page(
            "Welcome to nginx!",
            "<h1>Welcome to nginx!</h1><p>If you see this page, the nginx web server is successfully installed and "
            "working. Further configuration is required.</p>",
        ),
    ),
    "the default page of Apache": (
        _S.PARKED,
        page(
            "Apache2 Debian Default Page: It works",
            "<div><div class='page_header'><span>Apache2 Debian Default Page</span></div><div>It works!</div><p>This is "
            "the default welcome page used to test the correct operation of the server. "
            + "You may read on. " * 90
            + "</p></div>",
        ),
    ),
    "Create React App": (
        _S.NEEDS_JAVASCRIPT,
        page(
            "React App",
            f"<noscript>You need to enable JavaScript to run this app.</noscript><div id='root'></div>{SCRIPTS}",
        ),
    ),
    "Vue": (
        _S.NEEDS_JAVASCRIPT,
        page(
            "Harbour",
            "<noscript><strong>We're sorry but harbour doesn't work properly without JavaScript enabled. Please enable "
            f"it to continue.</strong></noscript><div id='app'></div>{SCRIPTS}",
        ),
    ),
    "Next.js rendered by the browser alone": (
        _S.NEEDS_JAVASCRIPT,
        page("Harbour", f"<div id='__next'></div>{SCRIPTS}"),
    ),
    "Docusaurus without its pages": (
        _S.NEEDS_JAVASCRIPT,
        page("Harbour docs", f"<div id='__docusaurus'></div>{SCRIPTS}"),
    ),
    "Angular while it loads": (
        _S.NEEDS_JAVASCRIPT,
        page("Harbour", f"<app-root>Loading...</app-root>{SCRIPTS}"),
    ),
    "a page that asks for it in plain sight": (
        _S.NEEDS_JAVASCRIPT,
        page("Harbour", f"<div><p>Please enable JavaScript to view this site.</p></div>{SCRIPTS}"),
    ),
    "a check of the browser": (
        _S.NEEDS_JAVASCRIPT,
        page(
            "Just a moment...",
            "<div class='main-wrapper'><div><noscript><span>Enable JavaScript and cookies to continue</span></noscript>"
            f"</div></div>{SCRIPTS}",
        ),
    ),
    "a German shell": (
        _S.NEEDS_JAVASCRIPT,
        page(
            "Hafen",
            f"<noscript>Bitte aktivieren Sie JavaScript, um fortzufahren.</noscript><div id='app'></div>{SCRIPTS}",
        ),
    ),
    "a Chinese shell": (
        _S.NEEDS_JAVASCRIPT,
        page(
            "港口", f"<noscript>请启用 JavaScript 后继续。</noscript><div id='app'></div>{SCRIPTS}"
        ),
    ),
}

BANNER = (
    "<div id='onetrust-banner-sdk' role='dialog'><h2>We value your privacy</h2><p>We use cookies to improve this site."
    "</p><button>Accept all cookies</button><button>Reject</button></div>"
)
HEADER_LOGIN = (
    "<header><a href='/'>Harbour</a><div class='dropdown'><form><input name='user'><input type='password'>"
    "<button>Sign in</button></form></div></header>"
)

HONEST: dict[str, str] = {
    "a guide to error pages": framed(
        "Custom 404 pages | Harbour",
        "<h1>Custom 404 pages</h1><p>When the page you are looking for does not exist, the server shows a page of its "
        f"own. Put a file 404.html at the root of the site.</p><p>{PROSE}</p>",
    ),
    "a short one": framed(
        "Not found page - Harbour",
        "<h1>Configure the not found page</h1><p>Set the address of the page.</p>",
    ),
    "an entry of a reference on a status": framed(
        "404 Not Found - HTTP | Harbour",
        "<h1>404 Not Found</h1><p>The HTTP 404 Not Found client error response status code indicates that the server "
        "cannot find the requested resource. Links that lead to such pages are often called broken or dead.</p>"
        "<h2>Status</h2><pre>404 Not Found</pre>",
    ),
    "an entry of a reference without an example": framed(
        "404 Not Found | Harbour glossary",
        "<h1>404 Not Found</h1><p>A status of HTTP: the server has no such resource, and does not say whether it had "
        "or will have it. Compare 410.</p>",
    ),
    "a very short entry of a reference": framed(
        "Not found - Harbour API", "<h1>Not found</h1><p>Raised for an unknown berth.</p>"
    ),
    "an entry on an error": framed(
        "Error - Harbour API", "<h1>Error</h1><p>Returned when the page does not exist.</p>"
    ),
    "an exception of a reference": framed(
        "NotFound - Harbour", "<h1>NotFound</h1><p>Raised when the record does not exist.</p>"
    ),
    "an event": framed("Leave - Harbour", "<h1>Leave</h1><p>Sent when the mouse leaves.</p>"),
    "an answer on errors": framed(
        "What does error 404 mean? - Harbour",
        "<h1>What does error 404 mean?</h1><p>The page was not found. Check the address for mistakes, then go back to "
        "the start page and search for it there.</p>",
    ),
    "a story of a lost page": framed(
        "The page that was not found | Harbour blog",
        f"<article><h1>Page not found</h1><p>{PROSE * 12}</p><p>The page you are looking for does not exist.</p></article>",
    ),
    "a guide to logging in": framed(
        "Log in | Harbour handbook",
        "<h1>Log in</h1><p>To log in, open the app, enter your email address and press the blue button. If you have "
        "forgotten your password, ask the desk for a new one; it takes a minute.</p>",
    ),
    "a guide to login forms": framed(
        "Login forms", f"<h1>Login form</h1><p>{PROSE}</p><pre>&lt;input type='password'&gt;</pre>"
    ),
    "a page beside a login form": page(
        "Leave - Harbour",
        f"{HEADER_LOGIN}<main><h1>Leave</h1><p>Sent when the mouse leaves.</p></main>",
    ),
    "a guide on logging in beside a login form": page(
        "Sign in - Harbour",
        f"{HEADER_LOGIN}<main><h1>Sign in</h1><p>Open the app and choose your name from the list of crew members, then "
        "enter the number on your card.</p></main>",
    ),
    "a form to register": framed(
        "Berths",
        "<h1>Ask for a berth</h1><form><input name='user'><input type='password'></form><p>Costs 12 a day.</p>",
    ),
    "a policy on cookies": framed(
        "Cookie policy | Harbour",
        f"<h1>Cookie policy</h1><p>We use cookies to keep you logged in. {PROSE * 5}</p><h2>Manage cookies</h2><p>You "
        "may reject cookies in your browser.</p>",
    ),
    "a short policy on cookies": framed(
        "Cookies | Harbour",
        "<h1>Cookies</h1><p>We use cookies to keep you logged in, and for nothing else.</p>",
    ),
    "a short page under a banner": page(
        "Leave - Harbour",
        f"{BANNER}{NAV}<main><h1>Leave</h1><p>Sent when the mouse leaves.</p></main>{SCRIPTS}",
    ),
    "a long page under a banner": page(
        "Gauges", f"{BANNER}{NAV}<main><h1>Gauges</h1><p>{PROSE * 9}</p></main>{SCRIPTS}"
    ),
    "a guide to enabling JavaScript": framed(
        "Enable JavaScript | Harbour help",
        "<h1>Enable JavaScript</h1><p>This site needs JavaScript. Open the settings of your browser, choose Privacy, "
        "then Site settings, and switch on JavaScript. Then load the page again.</p>",
    ),
    "a page with a word on JavaScript": framed(
        "Map",
        f"<h1>Map</h1><noscript>Enable JavaScript to see the map.</noscript><p>{PROSE}</p><div id='map'></div>",
    ),
    "a short page with an empty element for a script": framed(
        "Search", "<h1>Tide today</h1><p>High water at noon.</p><div id='app'></div>"
    ),
    "a guide to nginx": framed(
        "Install nginx",
        "<h1>Install nginx</h1><p>You will see a page that says: Welcome to nginx! If you see this page, "
        "the web server is successfully installed and working.</p>",
    ),
    "an article on domains for sale": framed(
        "When a domain is for sale | Harbour",
        f"<h1>When a domain is for sale</h1><p>This domain is for sale, it says. {PROSE * 3}</p>",
    ),
    "a list of links": page(
        "Guides", "<h1>Guides</h1><ul>" + "<li><a href='/g'>Guide</a></li>" * 20 + "</ul>"
    ),
    "a redirect": page(
        "Redirecting",
        "<script>location='/b'</script>Redirecting...",
        "<meta http-equiv='refresh' content='0;url=/b'>",
    ),
    "an empty page": page("Blank", ""),
    "a page of one word": page("Ok", "ok"),
    "an error of the domain at sea": framed(
        "Error 7", "<h1>Error 7</h1><p>The gauge is out of reach.</p>"
    ),
    "a German guide": framed(
        "Seite nicht gefunden: Ursachen",
        "<h1>Warum eine Seite nicht gefunden wird</h1><p>Der Link ist veraltet.</p>",
    ),
    "a Japanese guide": framed(
        "ログイン方法", "<h1>ログイン方法</h1><p>アプリを開いて名前を選びます。</p>"
    ),
}
