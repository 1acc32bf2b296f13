"""How the tables in this folder say a row: a function for each type.

`in_effect` is set where Ottla acts on the config; the others are known, checked and shown, nothing more.
"""

from collections.abc import Callable
from typing import Final

from ottla.config.definition import (
    ConfigDefinition,
    ConfigType,
    Importance,
    NoDefault,
    UpdateMode,
    Validator,
    Value,
)

Row = ConfigDefinition

HIGH: Final = Importance.HIGH
LOW: Final = Importance.LOW
PER_BROKER: Final = UpdateMode.PER_BROKER
CLUSTER_WIDE: Final = UpdateMode.CLUSTER_WIDE

MAX_INT: Final = (1 << 31) - 1
MAX_LONG: Final = (1 << 63) - 1
MAX_DOUBLE: Final = 1.7976931348623157e308


def _row_of(config_type: ConfigType) -> Callable[..., Row]:
    def row(
        name: str,
        default: Value | NoDefault,
        doc: str,
        *,
        rule: Validator | None = None,
        importance: Importance = Importance.MEDIUM,
        mode: UpdateMode = UpdateMode.READ_ONLY,
        internal: bool = False,
        in_effect: bool = False,
    ) -> Row:
        return Row(name, config_type, default, doc, rule, importance, internal, mode, in_effect)

    return row


boolean = _row_of(ConfigType.BOOLEAN)
string = _row_of(ConfigType.STRING)
integer = _row_of(ConfigType.INT)
short = _row_of(ConfigType.SHORT)
long = _row_of(ConfigType.LONG)
double = _row_of(ConfigType.DOUBLE)
list_of = _row_of(ConfigType.LIST)
java_class = _row_of(ConfigType.CLASS)
password = _row_of(ConfigType.PASSWORD)
