"""An inspector for tests: it measures a text as it stands, and believes what that says of itself."""

from tidemark.domain.documents import Anomaly, Inspection, RawDocument
from tidemark.domain.hashing import digest_text


class MarkInspector:
    """Measures texts of every kind, and finds the anomaly that a text names: "SUSPECT soft_404".

    It knows no blocks, so there is no boilerplate that it could leave out.
    """

    def inspect(
        self, raw: RawDocument, boilerplate: frozenset[int] = frozenset()
    ) -> Inspection | None:
        if not raw.media_type.startswith(("text/", "message/")) and not raw.media_type.endswith(
            ("json", "xml", "rtf")
        ):
            return None
        text = " ".join(raw.content.decode("utf-8", "replace").split())
        mark = text.partition("SUSPECT ")[2].split(" ")[0]
        anomaly = Anomaly(mark) if mark else None
        return Inspection(digest_text(text), len(text), (), anomaly, f"says {mark}" if mark else "")
