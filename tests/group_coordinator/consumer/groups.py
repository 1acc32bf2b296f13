"""Groups as assignors see them: hypothesis makes them, with an earlier assignment that no two members share."""

from hypothesis import strategies as st

from ottla.group_coordinator.consumer.assignors.spec import GroupSpec, MemberSpec
from ottla.wire.uuids import Uuid


def topic_id(number: int) -> Uuid:
    """The id of the topic of this number."""
    return bytes([0x10 + number]) * 16


@st.composite
def group_specs(draw: st.DrawFn, *, homogeneous: bool, max_topics: int = 4) -> GroupSpec:
    """A group of up to six members."""
    counts = draw(
        st.dictionaries(
            st.integers(0, max_topics - 1).map(topic_id), st.integers(1, 9), min_size=1, max_size=max_topics
        )
    )
    names = draw(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=6, unique=True))
    common = frozenset(counts)
    if homogeneous:
        common = draw(st.frozensets(st.sampled_from(sorted(counts)), min_size=1))
    members: dict[str, MemberSpec] = {}
    held: dict[str, dict[Uuid, set[int]]] = {name: {} for name in names}
    for topic, count in counts.items():
        for partition in range(count):
            owner = draw(st.sampled_from([*names, None, None]))
            if owner is not None:
                held[owner].setdefault(topic, set()).add(partition)
    for name in names:
        topics = common if homogeneous else draw(st.frozensets(st.sampled_from(sorted(counts))))
        members[name] = MemberSpec(
            topics,
            {topic: frozenset(partitions) for topic, partitions in held[name].items()},
            instance_id=draw(st.none() | st.just("instance-" + name)),
        )
    return GroupSpec(members, counts, homogeneous)
