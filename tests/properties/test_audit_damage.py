"""Whatever was done to the index, the audit names exactly that, and its repair makes it as it was."""

from collections import Counter
from collections.abc import Mapping

import pytest
from audits import OWNERS, POINT_DAMAGE, SECTION_DAMAGE, Audited, Damage
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_the_audit_names_exactly_the_damage_and_the_repair_undoes_it(data: st.DataObject) -> None:
    audited = Audited().fill(data.draw(st.integers(1, 5), "documents"))
    before = audited.held()
    damage = Damage(audited)
    for point in audited.points():
        if how := data.draw(st.sampled_from((None, None, *POINT_DAMAGE)), "point"):
            damage.to_point(how, point)
    for section in audited.sections():
        if how := data.draw(st.sampled_from((None, None, *SECTION_DAMAGE)), "section"):
            damage.to_section(how, section)
    if audited.points():
        extra = st.tuples(st.sampled_from(OWNERS), st.sampled_from(("points", "sections")))
        for whose, what in data.draw(st.lists(extra, max_size=4), "extra"):
            damage.add(whose, what)
    if data.draw(st.booleans(), "a dead generation"):
        damage.leave_a_generation()

    found = audited.audit()
    assert +audited_counts(found.counts) == +damage.expected
    repaired = audited.audit(repair=True)
    assert +audited_counts(repaired.counts) == +damage.expected, "looking heals nothing"
    assert not repaired.differs, repaired
    assert audited.held() == before
    assert len(audited.world.embedder.texts) == damage.embedded, (
        "what was there is not embedded again"
    )
    again = audited.audit()
    assert again.clean, again.counts
    assert again.out_of_step == ()
    audited.run()
    assert audited.world.embedder.texts == [], "and a run has nothing left to do"


def audited_counts(counts: Mapping[str, int]) -> Counter[str]:
    return Counter(counts)
