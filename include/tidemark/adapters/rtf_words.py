"""Control words of RTF by what they do to a reader of text."""

from tidemark.adapters.html_lines import LINE_END

PAGES = {
    128: "cp932", 129: "cp949", 130: "johab", 134: "gbk", 136: "big5", 161: "cp1253", 162: "cp1254",
    163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874",
    238: "cp1250", 77: "mac_roman",
}  # fmt: skip
SIGNS = {
    "tab": "\t", "emdash": "—", "endash": "–", "lquote": "‘", "rquote": "’", "ldblquote": "“",
    "rdblquote": "”", "bullet": "•", "emspace": " ", "enspace": " ", "line": LINE_END,
    "softline": LINE_END, "nestcell": " ", "chftn": "",
}  # fmt: skip
_UNREAD_NAMES = (
    "colortbl pict object header headerl headerr headerf footer footerl footerr footerf fldinst "
    "annotation atnid atnauthor ftnsep ftnsepc aftnsep aftnsepc xe tc rxe author operator company "
    "comment doccomm keywords subject manager category hlinkbase creatim revtim printim buptim "
    "template datafield listtable listoverridetable revtbl rsidtbl generator themedata "
    "colorschememapping latentstyles datastore xmlnstbl pgptbl nonshppict filetbl do bkmkstart "
    "bkmkend fontemb falt panose wgrffmtfilter "
)
UNREAD = frozenset(_UNREAD_NAMES.split())
MARKS = frozenset({"listtext", "pntext"})
DESTINATIONS = {"fonttbl": "fonts", "stylesheet": "styles", "info": "info", "footnote": "footnote",
                 "listtext": "mark", "pntext": "mark", "title": "title"}  # fmt: skip
