"""The phrases of pages that stand in the way: logins, consents, parked domains, empty shells."""

import re

from tidemark.adapters.html_inspector_phrases import Phrases

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
