"""Texts are read in the encoding that they were written in, whatever they say of it."""

import pytest

from tidemark.adapters.decoding import decode
from tidemark.domain.errors import DocumentError

TEXTS = {
    "cp1250": "Příliš žluťoučký kůň úpěl ďábelské ódy. Lucerna hoří celou noc.",
    "cp1251": "Фонарь горит всю ночь. Смотритель подрезает фитиль каждое утро.",
    "cp1252": "Die Öl­lampe brennt – für 5 € im Übrigen – die ganze Nacht.",
    "cp1253": "Το φανάρι καίει όλη τη νύχτα. Ο φύλακας κόβει το φιτίλι κάθε πρωί.",
    "cp1255": "הפנס דולק כל הלילה. השומר גוזם את הפתיל בכל בוקר לפני פתיחת הנמל.",
    "koi8_r": "Фонарь горит всю ночь. Смотритель подрезает фитиль каждое утро.",
    "cp932": "ランタンは一晩中燃えている。番人は毎朝、港が開く前に芯を切る。",
    "gb18030": "灯笼整夜燃烧。看守每天早晨修剪灯芯，然后打开港口。",
    "big5": "燈籠整夜燃燒。看守每天早晨修剪燈芯，然後打開港口。",
    "cp949": "등불은 밤새도록 탄다. 등대지기는 매일 아침 심지를 다듬는다.",
    "cp437": "Die Laterne brennt für Käthe überall. Die Wärterin löscht sie früh.",
}


@pytest.mark.parametrize("encoding", sorted(TEXTS))
def test_a_text_that_does_not_say_its_encoding_is_read_by_its_language(encoding: str) -> None:
    text = f"{TEXTS[encoding]}\n" * 3
    assert decode(text.encode(encoding), None, "a.txt") == text


@pytest.mark.parametrize(
    ("label", "codec", "text"),
    [
        ("windows-31j", "cp932", "灯台①"),
        ("x-sjis", "cp932", "灯台"),
        ("x-euc-jp", "euc_jp", "灯台"),
        ("x-gbk", "gbk", "灯塔"),
        ("gb2312", "gb18030", "灯塔𠮷"),
        ("iso-8859-8-i", "iso8859_8", "הפנס"),
        ("ks_c_5601-1987", "cp949", "등불"),
        ("latin1", "cp1252", "5 € – “so”"),
        ("cp-850", "cp850", "Käthe"),
        ("utf-16", "utf-8", "Käthe"),
    ],
)
def test_a_label_means_what_it_means_to_browsers(label: str, codec: str, text: str) -> None:
    assert decode(text.encode(codec), label, "a.txt") == text
    page = f"<meta charset={label}><p>{text}</p>"
    assert decode(page.encode(codec), None, "a.html") == page


@pytest.mark.parametrize("label", ["", "no-such-encoding", "utf-16", "ascii"])
def test_a_wrong_label_harms_no_utf_8(label: str) -> None:
    assert decode("Grüße, 灯台".encode(), label, "a.txt") == "Grüße, 灯台"


def test_one_damaged_byte_does_not_change_how_the_rest_is_read() -> None:
    assert decode("Grüße ".encode() + b"\xff" + " aus Köln".encode(), None, "a.txt") == (
        "Grüße \ufffd aus Köln"
    )


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "utf-32"])
def test_marks_and_zero_bytes_tell_unicode_of_any_width(encoding: str) -> None:
    text = "The lamp burns all night long."
    assert decode(text.encode(encoding), None, "a.txt") == text


def test_what_is_no_text_is_refused_by_name() -> None:
    with pytest.raises(DocumentError, match=r"a\.bin holds binary data"):
        decode(b"\x7fELF\0\0\0\1" * 100, None, "a.bin")
