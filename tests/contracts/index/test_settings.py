"""Collections that another version of Tidemark, or somebody else, set up: brought up to date or refused."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from vector_index_cases import DIMENSION, direction, point, section, words

from tidemark.adapters.index.edge_folder import config
from tidemark.adapters.index.layout import POINT_KEYS
from tidemark.adapters.index.qdrant import QdrantServerIndex
from tidemark.adapters.index.qdrant_edge import QdrantEdgeIndex
from tidemark.domain.errors import PermanentError

if TYPE_CHECKING:
    from qdrant_client import QdrantClient
    from qdrant_edge import EdgeConfig

pytestmark = pytest.mark.services

HINT = "(audit --repair|index every source)"


# Embedded


@pytest.fixture
def edge(tmp_path: Path) -> QdrantEdgeIndex:
    index = QdrantEdgeIndex(tmp_path)
    index.ensure(1, DIMENSION)
    index.upsert_points(1, [point(1, 30)])
    return index


def written(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "tidemark__g1" / "collection.json").read_text())
    return found


def replace_shard(folder: Path, settings: "EdgeConfig") -> None:
    import shutil

    from qdrant_edge import EdgeShard

    shard = folder / "tidemark__g1" / "shard"
    shutil.rmtree(shard)
    shard.mkdir()
    EdgeShard.create(str(shard), settings).close()
    (folder / "tidemark__g1" / "collection.json").write_text(json.dumps({"dimension": DIMENSION}))


@pytest.mark.parametrize("text", ['{"dimension": 4}', "{", "[]", None])
def test_what_the_collection_file_lacks_is_added(
    edge: QdrantEdgeIndex, tmp_path: Path, text: str | None
) -> None:
    complete = written(tmp_path)
    path = tmp_path / "tidemark__g1" / "collection.json"
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    edge.ensure(1, DIMENSION, "made by this")
    assert written(tmp_path) == {**complete, "embed_fingerprint": "made by this"}
    assert edge.dimension(1) == DIMENSION
    assert edge.count_points(1) == 1
    assert edge.search(1, 1, dense=direction(30))[0].score == pytest.approx(1.0, abs=1e-5)


def test_a_lost_collection_file_does_not_hide_another_dimension(
    edge: QdrantEdgeIndex, tmp_path: Path
) -> None:
    (tmp_path / "tidemark__g1" / "collection.json").unlink()
    with pytest.raises(PermanentError, match=r"does not say.*tidemark index"):
        edge.dimension(1)
    with pytest.raises(PermanentError, match=f"expected vector size 5, but got 4.*{HINT}"):
        edge.ensure(1, DIMENSION + 1)
    assert edge.count_points(1) == 1


def test_an_unchanged_embedded_collection_is_not_written_to(
    edge: QdrantEdgeIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {p: p.stat().st_mtime_ns for p in tmp_path.glob("*/*.json")}
    monkeypatch.delattr("tidemark.adapters.index.qdrant_edge.config")
    edge.ensure(1, DIMENSION, "")
    assert {p: p.stat().st_mtime_ns for p in tmp_path.glob("*/*.json")} == before


def test_changed_settings_reach_a_collection_that_is_there(
    edge: QdrantEdgeIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemark.adapters.index.edge_folder.SEAL_KB", 1234)
    with edge.session():
        assert edge.count_points(1) == 1
        edge.ensure(1, DIMENSION)
        assert edge.count_points(1) == 1
    assert written(tmp_path)["settings"]["seal_kb"] == 1234
    engine = json.loads((tmp_path / "tidemark__g1" / "shard" / "edge_config.json").read_text())
    assert engine["optimizers"]["indexing_threshold"] == 1234


def test_payload_indexes_that_are_missing_or_of_another_type_are_made(
    edge: QdrantEdgeIndex, tmp_path: Path
) -> None:
    from qdrant_edge import EdgeShard, PayloadSchemaType, UpdateOperation

    path = str(tmp_path / "tidemark__g1" / "shard")
    shard = EdgeShard.load(path)
    shard.update(UpdateOperation.delete_field_index("source"))
    shard.update(UpdateOperation.delete_field_index("labels"))
    shard.update(UpdateOperation.create_field_index("labels", PayloadSchemaType.Integer))
    shard.close()
    edge.ensure(1, DIMENSION)
    shard = EdgeShard.load(path)
    schema = {key: index.data_type for key, index in shard.info().payload_schema.items()}
    shard.close()
    assert schema == dict.fromkeys(POINT_KEYS, PayloadSchemaType.Keyword)


def test_an_embedded_collection_that_must_be_made_anew_is_refused(
    edge: QdrantEdgeIndex, tmp_path: Path
) -> None:
    from qdrant_edge import Distance, EdgeConfig, EdgeSparseVectorParams, EdgeVectorParams

    lexical = config(DIMENSION).sparse_vectors
    dense = config(DIMENSION).vectors
    dot = {"dense": EdgeVectorParams(size=DIMENSION, distance=Distance.Dot)}
    for settings, what in (
        (EdgeConfig(vectors=dot, sparse_vectors=lexical), "expected distance Cosine"),
        (EdgeConfig(vectors=dense), "lexical"),
        (EdgeConfig(vectors={"text": dense["dense"]}, sparse_vectors=lexical), "dense"),
        (EdgeConfig(vectors=dense, sparse_vectors={"lexical": EdgeSparseVectorParams()}), "Idf"),
    ):
        replace_shard(tmp_path, settings)
        for _ in range(2):
            with pytest.raises(PermanentError, match=f"{what}.*{HINT}"):
                edge.ensure(1, DIMENSION)


def test_points_with_numbers_for_ids_are_none_of_ours(
    edge: QdrantEdgeIndex, tmp_path: Path
) -> None:
    from qdrant_edge import EdgeShard, Point, UpdateOperation

    shard = EdgeShard.load(str(tmp_path / "tidemark__g1" / "shard"))
    foreign = Point(5, {"dense": list(direction(30))}, {"source": "a"})
    shard.update(UpdateOperation.upsert_points([foreign]))
    shard.close()
    assert [p.payload for p in edge.scan_points(1)] == [{"number": 1}]
    assert [p.payload for p in edge.search(1, 5, dense=direction(30))] == [{"number": 1}]


# On a server


@pytest.fixture
def client() -> "Iterator[QdrantClient]":
    from qdrant_client import QdrantClient
    from qdrant_http import serving

    with serving() as http:
        client = QdrantClient(url=http.url, check_compatibility=False)
        yield client
        client.close()


@pytest.fixture
def server(client: "QdrantClient") -> QdrantServerIndex:
    return QdrantServerIndex(client_factory=lambda: client)


def test_payload_indexes_on_a_server_are_brought_up_to_date(
    client: "QdrantClient", server: QdrantServerIndex
) -> None:
    from qdrant_client import models

    server.ensure(1, DIMENSION)
    complete = client.get_collection("tidemark__g1").payload_schema
    client.delete_payload_index("tidemark__g1", "source")
    client.delete_payload_index("tidemark__g1", "labels")
    client.create_payload_index("tidemark__g1", "labels", models.PayloadSchemaType.TEXT)
    server.ensure(1, DIMENSION)
    assert client.get_collection("tidemark__g1").payload_schema == complete
    assert set(POINT_KEYS) <= complete.keys()


def test_words_are_weighed_from_then_on_where_they_were_not(
    client: "QdrantClient", server: QdrantServerIndex
) -> None:
    from qdrant_client import models

    cosine = models.VectorParams(size=DIMENSION, distance=models.Distance.COSINE)
    index = models.SparseIndexParams(full_scan_threshold=777)
    client.create_collection(
        "tidemark__g1",
        vectors_config={"dense": cosine},
        sparse_vectors_config={"lexical": models.SparseVectorParams(index=index)},
    )
    server.upsert_points(1, [point(1, tokens=(1,)), point(2, tokens=(1, 2))])
    server.ensure(1, DIMENSION)
    found = (client.get_collection("tidemark__g1").config.params.sparse_vectors or {})["lexical"]
    assert found == models.SparseVectorParams(index=index, modifier=models.Modifier.IDF)
    rare, common = (server.search(1, 1, lexical=words(n))[0].score for n in (2, 1))
    assert rare > common


def test_a_collection_on_a_server_that_must_be_made_anew_is_refused(
    client: "QdrantClient", server: QdrantServerIndex
) -> None:
    from qdrant_client import models

    def vectors(**settings: Any) -> dict[str, Any]:
        given = {"size": DIMENSION, "distance": models.Distance.COSINE, **settings}
        return {"dense": models.VectorParams(**given)}

    lexical = {"lexical": models.SparseVectorParams(modifier=models.Modifier.IDF)}
    many = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
    for vectors_config, sparse, what in (
        (vectors(distance=models.Distance.DOT), lexical, "compares vectors by Dot, not by Cosine"),
        (vectors(), None, "no sparse vector named 'lexical'"),
        (vectors()["dense"], lexical, "no vector named 'dense'"),
        ({"text": vectors()["dense"]}, lexical, "no vector named 'dense'"),
        (vectors(multivector_config=many), lexical, "many vectors for one point"),
        (vectors(size=5), lexical, "holds vectors of 5 numbers"),
    ):
        client.create_collection(
            "tidemark__g1", vectors_config=vectors_config, sparse_vectors_config=sparse
        )
        with pytest.raises(PermanentError, match=f"{what}.*{HINT}"):
            server.ensure(1, DIMENSION)
        client.delete_collection("tidemark__g1")


def test_an_unchanged_collection_on_a_server_costs_five_questions_and_no_write(
    client: "QdrantClient", server: QdrantServerIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.ensure(1, DIMENSION, "made by this")
    asked: list[str] = []
    for name in dir(client):
        if name.startswith(("create", "update", "upsert", "delete", "get_", "retrieve", "coll")):
            known = getattr(client, name)
            if callable(known):
                monkeypatch.setattr(
                    client,
                    name,
                    lambda *a, _name=name, _known=known, **k: (
                        asked.append(_name),
                        _known(*a, **k),
                    )[1],
                )
    server.ensure(1, DIMENSION, "made by this")
    assert sorted(asked) == ["collection_exists"] * 3 + ["get_collection"] * 2 + ["retrieve"]


def test_a_collection_made_by_another_process_meanwhile_is_used(
    client: "QdrantClient", server: QdrantServerIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = client.create_collection

    def made_by_both(*given: Any, **settings: Any) -> Any:
        create(*given, **settings)
        return create(*given, **settings)

    monkeypatch.setattr(client, "create_collection", made_by_both)
    server.ensure(1, DIMENSION)
    server.upsert_points(1, [point(1)])
    server.upsert_sections(1, [section(1)])
    assert (server.count_points(1), server.count_sections(1)) == (1, 1)


def test_points_with_numbers_for_ids_on_a_server_are_none_of_ours(
    client: "QdrantClient", server: QdrantServerIndex
) -> None:
    from qdrant_client import models

    server.ensure(1, DIMENSION)
    server.upsert_points(1, [point(1, 30)])
    foreign = models.PointStruct(id=5, vector={"dense": list(direction(30))}, payload={})
    client.upsert("tidemark__g1", [foreign])
    assert [p.payload for p in server.scan_points(1, vectors=True)] == [{"number": 1}]
    assert [p.payload for p in server.search(1, 5, dense=direction(30))] == [{"number": 1}]
