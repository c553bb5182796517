"""The words that decide whether a full stop ends a sentence (English, German, French, Spanish, Italian,
Portuguese, Dutch); all lower case, without their last stop.
"""


def _words(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


# Always followed by what they belong to.
NEVER_LAST = _words(
    # titles before a name
    "mr mrs ms messrs mmes dr drs prof hr fr frl mme mlle mgr msgr sra srta dña dott sig avv arq exmo",
    "ing fa med phil jur rer habil dhr mevr mw ds dipl pfr",
    # words between two others
    "eg ie vs cf viz ca approx resp bzw bspw zb dh vgl ggf evtl eventl inkl einschl exkl sog gem geb",
    "ebd zit zzgl abzgl lt mind max min ugs insb insbes bspw entspr ggü bijv bv nl incl excl env",
    "zul zust zuständ versch jew jeweil stellv vors amtl gesetzl sonst priv öffentl schriftl mündl",
    "lfd bgbl rgbl einschließl ausschl zusätzl monatl jährl wöchentl vorauss voraussichtl",
    "durchschn ungef hl pkt bhf anl",
    "verb allgem erg erforderl entspr unverb mtl städt staatl techn wiss",
    "kath evang wirtschaftl beschr unbeschr gewerbl",
    "pej ej pex cfr ecc aprox apdo avda dupdo gral dir transl subst dep cosiddetto mln mld nb ps",
)

# As above, when they begin with a capital; as words of their own they may end a sentence.
NEVER_LAST_AS_NAME = _words(
    "gen rev hon sen rep gov col capt cmdr comdr lt ltd-gen sgt maj cpl adm pres supt insp atty asst",
    "pvt ret st ste mt ft fort bros sr sres dra don pe san sta sto",
)

# May end a sentence: they do when the next word is one that begins sentences.
MAY_BE_LAST = _words(
    "inc ltd corp co llc plc gmbh bros jr sr esq phd md al assn assoc dept dist div univ inst ave",
    "blvd rd st str ln hwy pkwy ste apt bldg fl ft lb lbs oz hr hrs sec secs mins yr yrs mo est",
    "govt intl natl dpt ext tel fax adj adv orig esp var sp spp subsp misc ibid op cit suppl repr rept",
    "gesch abbr abs anm aufl ausg bd bde bes betr bez dgl etw hrsg jh jhd jr kap mio mrd mwst nachm od",
    "rd sa spez std tägl tsd ua usf u-a vorm vorl wg zt zw zzt allg bearb",
    "av bd bld boul ed éd fasc hab ill intro janv févr juil déc sept oct nov ouvr s-d sté trad",
    "vve admón cía dcha izq núm pág págs prov tfno ud uds ee uu art cap pag pagg sec seg vol",
    "blz enz afb art jl nr pag red tel uitg zgn",
    "a-m p-m am pm",
)

# With a capital: months and days, which are also words or parts of them.
MONTHS_AND_DAYS = _words(
    "jan feb mar apr jun jul aug sep sept oct nov dec okt dez mrz mär ene abr ago dic gen mag giu lug",
    "set ott fev mai out mon tue tues wed thu thur thurs fri sat sun mo di mi do sa so mrt mei",
)

# Words of lists: after them a capital does begin a sentence, a small letter does not.
LAST_BEFORE_CAPITAL = _words("etc usw usf enz ecc")

# Before a number, a letter of an enumeration or a Roman numeral.
BEFORE_NUMBER = _words(
    "no nos nr nrn núm num nn fig figs tab tabs tbl art arts sec sect",
    "secs ch chap chs vol vols pp p pg",
    "eq eqs para paras par app ex exx bd bde s ss abb abs abt kap ziff rdnr rn lit bl z pág págs pag",
    "exp eqn thm def prop lem cor rem rm lot ann n° nº cap lám n v vv",
    "zi gz gesch anl beil tz pos pkt plz bgbl rgbl gbl abl amtsbl tel fax",
    "c cc ser ver vers rev ed op ref refs reg cl lfg rz anm fn lect afb blz hfst jan feb mar",
    "apr jun jul aug sep sept oct nov dec approx ca",
)

# Names that end with their own mark.
EXCLAIMED_NAMES = _words("yahoo yum jeopardy panic oklahoma joomla kahoot wham")

# With a capital in the middle of a text these begin a sentence.
STARTERS = _words(
    "the a an this that these those there here it its he she they we you i his her their our my your",
    "what when where who why how which if in on at by for from with without after before during since",
    "until while although though because as to but and or so yet nor then thus hence therefore however",
    "moreover meanwhile finally first second next also still once only even",
    "such some many most all each",
    "every both no not do does did is are was were can could will would should may might must have has",
    "let please another other one two",
    "der die das ein eine einer es er sie wir ihr ich man dies",
    "dieser diese dieses jedoch aber und oder",
    "wenn als nach vor bei mit im am auf aus seit zum zur hier dort dann danach daher deshalb damit",
    "auch nur nicht kein keine alle wer wie wo wann warum sein seine",
    "le la les un une il elle ils elles on nous vous je ce cette ces cela ceci mais et ou donc car si",
    "quand dans après avant avec sans pour par depuis ensuite cependant toutefois son sa ses leur",
    "el los lo una él ella ellos esto este esta estos pero y o sin con para desde cuando como",
    "según también luego su sus en no se",
    "il gli uno lui lei loro questo questa questi ma e dopo prima quando nel nella per",
    "o os as um uma ele ela eles isto este mas depois antes no na para com sem seu sua",
    "het een hij zij wij deze dit dat maar en als na voor bij met zonder er ook niet hun",
)

# Those that are so even where nothing is written with a capital.
CLEAR_STARTERS = _words(
    "the we it this these those our he she they there however his her their its",
    "die das wir diese dieses les nous cette los esta estos questo questi het deze",
)

# A number with a stop before one of these is an ordinal (3. Oktober).
AFTER_ORDINAL = _words(
    "januar jänner februar märz april mai juni juli august september oktober november dezember",
    "jan feb mär mrz apr jun jul aug sep sept okt nov dez jahrhundert jahrhunderts jh jhd weltkrieg",
    "weltkriegs auflage aufl klasse stock etage quartal halbjahr kapitel abschnitt absatz abs satz",
    "januari februari mars maj oktober",
)

# A number with a stop after one of these is an ordinal (der 3. Stock).
BEFORE_ORDINAL = _words(
    "am der die das dem den des zum zur vom im beim bis ab seit und oder jeder jedes"
)

SPEECH = "说道問问答喊叫称讲云曰"
