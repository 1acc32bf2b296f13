"""The configs that consumer groups go by; the server answers them from the broker's and the group's overrides."""

from typing import Final, Literal, NamedTuple, Protocol

MigrationPolicy = Literal["disabled", "upgrade", "downgrade", "bidirectional"]

UPGRADING: Final = ("upgrade", "bidirectional")
DOWNGRADING: Final = ("downgrade", "bidirectional")


class GroupTimes(NamedTuple):
    """What a group may override."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000


class ConsumerGroupSettings(Protocol):
    """`group.consumer.*`, read anew at each use because some of it changes while the broker runs."""

    @property
    def assignors(self) -> tuple[str, ...]:
        """Names of the assignors that members may ask for; the first is the default."""
        ...

    @property
    def max_size(self) -> int: ...

    @property
    def classic_max_size(self) -> int: ...

    @property
    def classic_session_timeouts_ms(self) -> tuple[int, int]:
        """The shortest and the longest that a member of the classic protocol may ask for."""
        ...

    @property
    def migration_policy(self) -> MigrationPolicy: ...

    @property
    def regex_refresh_interval_ms(self) -> int: ...

    def times_of(self, group_id: str) -> GroupTimes: ...
