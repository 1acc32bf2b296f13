"""Aims, ratios, limits and percentiles: the arithmetic of the benchmark."""

import pytest

from benchmarks.measures import Aim, Entry, Measure, judge, limit_of, percentile, shown

FASTER = Aim(ratio_at_least=1.3)


@pytest.mark.parametrize(
    ("aim", "ratio", "value", "limit", "expected"),
    [
        (FASTER, 1.3, 0, "broker", True),
        (FASTER, 1.29, 0, "broker", False),
        (FASTER, 1.29, 0, "machine", False),
        (FASTER, 1.0, 0, "client", True),
        (FASTER, 0.99, 0, "client", False),
        (Aim(ratio_at_most=0.5), 0.5, 0, "broker", True),
        (Aim(ratio_at_most=0.5), 0.51, 0, "client", False),
        (Aim(ratio_at_most=0.06, value_at_most=0.4), 0.05, 0.41, "", False),
        (Aim(ratio_at_most=0.06, value_at_most=0.4), 0.07, 0.3, "", False),
        (Aim(ratio_at_most=0.06, value_at_most=0.4), 0.05, 0.3, "", True),
        (Aim(value_at_least=97), 0.1, 97, "", True),
        (Aim(value_at_least=97), 5, 96.9, "", False),
    ],
)
def test_an_aim_is_met_or_not(aim: Aim, ratio: float, value: float, limit: str, expected: bool) -> None:
    """Ratios and values count; a client that is the limit can only be asked for a ratio of 1."""
    assert aim.is_met(ratio, value, limit) is expected


def test_an_aim_in_words() -> None:
    """As the table shows it, with the aim that holds."""
    assert FASTER.words("MB/s") == "≥ 1.3 ×"
    assert FASTER.words("MB/s", "client") == "≥ 1 ×"
    assert Aim(ratio_at_most=0.06, value_at_most=0.4).words("s") == "≤ 0.06 ×, ≤ 0.4 s"


def test_rounds_are_compared_with_their_own_kind() -> None:
    """Ratios are of the same round, and their median counts, not the ratio of the medians."""
    measure = Measure("speed", "MB/s", True, FASTER)
    ottla = [Entry(100), Entry(300), Entry(200)]
    kafka = [Entry(50), Entry(100), Entry(200)]
    verdict = judge(measure, ottla, kafka, 2)
    assert verdict.ratios == (2.0, 3.0, 1.0)
    assert (verdict.low, verdict.ratio, verdict.high) == (1.0, 2.0, 3.0)
    assert (verdict.ottla, verdict.kafka) == (200, 100)
    assert verdict.is_met is True


def test_a_measure_without_an_aim_is_not_judged() -> None:
    """Neither met nor missed."""
    assert judge(Measure("speed", "MB/s", True), [Entry(1)], [Entry(2)], 2).is_met is None


@pytest.mark.parametrize(
    ("entry", "limit"),
    [
        (Entry(1), ""),
        (Entry(1, client=0.95, cores=2.0), "client"),
        (Entry(1, client=0.6, cores=1.95), "machine"),
        (Entry(1, client=0.6, client_waits=0.35, cores=1.5), "machine"),
        (Entry(1, client=0.6, client_waits=0.1, cores=1.5), "broker"),
        (Entry(1, client=0.6, client_waits=0.1, cores=1.5, under_way=1.2), "broker"),
        (Entry(1, client=0.6, client_waits=0.1, cores=1.5, under_way=0.3), "client"),
        (Entry(1, client=0.6, cores=1.95, under_way=0.3), "machine"),
    ],
)
def test_what_the_limit_was(entry: Entry, limit: str) -> None:
    """A thread of the client that never rests, all cores in use, requests that come too seldom, or else the broker."""
    assert limit_of([entry], 2) == limit


@pytest.mark.parametrize(
    ("broker_cores", "limit", "is_met"),
    [(0.1, "client", True), (0.6, "machine", False), (0.0, "machine", False)],
)
def test_a_client_that_takes_the_whole_machine(broker_cores: float, limit: str, is_met: bool) -> None:
    """If the aim is out of reach for a broker that costs nothing, the client is the limit."""
    entries = [Entry(1.1, client=0.6, cores=1.9, broker_cores=broker_cores)]
    verdict = judge(Measure("speed", "MB/s", True, FASTER), entries, [Entry(1.0)], 2)
    assert (verdict.limit, verdict.is_met) == (limit, is_met)


@pytest.mark.parametrize(("ottla", "is_met"), [(97.0, True), (96.0, False)])
def test_what_is_kept_is_asked_of_everybody(ottla: float, is_met: bool) -> None:
    """Also where the client is the limit."""
    aim = Aim(value_at_least=97)
    verdict = judge(Measure("kept", "%", True, aim), [Entry(ottla, client=0.95)], [Entry(85.0)], 2)
    assert (verdict.limit, verdict.is_met, aim.words("%", verdict.limit)) == ("client", is_met, "≥ 97 %")


@pytest.mark.parametrize(
    ("more_is_better", "broker_cores", "cores", "limit"),
    [
        (True, 0.3, 1.75, "client"),
        (True, 0.6, 1.75, "broker"),
        (True, 0.0, 1.75, "broker"),
        (True, 0.3, 1.5, "broker"),  # it may have waited for the disk
        (False, 0.3, 1.75, ""),
    ],
)
def test_a_broker_with_little_to_do(
    more_is_better: bool, broker_cores: float, cores: float, limit: str
) -> None:
    """It does not keep busy clients from sending more; but how long one of them waits is its matter."""
    entries = [Entry(1.0, client=0.6, cores=cores, broker_cores=broker_cores)]
    assert judge(Measure("speed", "MB/s", more_is_better), entries, [Entry(1.0)], 2).limit == limit


def test_a_broker_that_is_slower_is_never_excused() -> None:
    """Whoever the limit is."""
    entries = [Entry(0.9, client=0.6, cores=1.9, broker_cores=0.1)]
    assert judge(Measure("speed", "MB/s", True, FASTER), entries, [Entry(1.0)], 2).is_met is False


def test_percentiles_are_values_that_occurred() -> None:
    """Nearest rank: no value is made up between two others."""
    values = [float(number) for number in range(1000, 0, -1)]
    assert percentile(values, 0.5) == 500
    assert percentile(values, 0.99) == 990
    assert percentile(values, 0.999) == 999
    assert percentile([7.0], 0.999) == 7
    assert percentile([1.0, 2.0], 0.5) == 1


@pytest.mark.parametrize(
    ("value", "text"), [(1234.5, "1,234 ms"), (12.34, "12.3 ms"), (1.234, "1.23 ms"), (0.0, "0.00 ms")]
)
def test_figures_have_as_many_digits_as_they_deserve(value: float, text: str) -> None:
    """Three or so."""
    assert shown(Measure("m", "ms", False), value) == text


@pytest.mark.parametrize(
    ("ottla", "client", "is_met", "is_even"),
    [
        ((0.99, 0.95, 1.02), 0.95, False, True),
        ((0.99, 0.95, 0.98), 0.95, False, False),  # behind in every round
        ((0.9, 0.95, 1.02), 0.95, False, False),  # and by too much
        ((1.01, 0.95, 1.02), 0.95, True, False),
        ((0.99, 0.95, 1.02), 0.5, False, False),  # the broker is the limit
    ],
)
def test_brokers_that_are_alike(ottla: tuple[float, ...], client: float, is_met: bool, is_even: bool) -> None:
    """Where the client is the limit, rounds on both sides of 1 tell nothing against a broker."""
    entries = [Entry(each, client=client, cores=1.2) for each in ottla]
    verdict = judge(Measure("speed", "MB/s", True, FASTER), entries, [Entry(1.0)] * 3, 2)
    assert (verdict.is_met, verdict.is_even) == (is_met, is_even)


def test_a_latency_is_never_even() -> None:
    """Its aim is far below 1."""
    entries = [Entry(each, client=0.95, cores=1.2) for each in (0.9, 0.95, 1.1)]
    verdict = judge(Measure("latency", "ms", False, Aim(ratio_at_most=0.8)), entries, [Entry(1.0)] * 3, 2)
    assert (verdict.is_met, verdict.is_even) == (False, False)
