"""The page docs/configs.md, made from the tables of `ottla.config`."""

from collections.abc import Iterable

from ottla.config.broker import AREAS
from ottla.config.client_metrics import CLIENT_METRICS_CONFIGS
from ottla.config.definition import NO_DEFAULT, ConfigDefinition, to_text
from ottla.config.dynamic import DYNAMIC_ONLY_CONFIGS
from ottla.config.group_configs import GROUP_CONFIGS, group_synonym
from ottla.config.topics import TOPIC_CONFIGS, TOPIC_SYNONYMS

_INTRODUCTION = """\
# Configs

Made from the tables in `config/` by `make docs`. Names, types, defaults and rules are those of Apache Kafka 4.3.
Every config is known, checked, shown by DescribeConfigs and, where Kafka allows it, changed by
IncrementalAlterConfigs; the mark ● says that Ottla also acts on it.

## Where Ottla differs

- `log.dir` defaults to `ottla-data` in the directory where the broker is started. Kafka's default is a temporary
  directory, which loses data.
- `node.id`, `process.roles` and `controller.listener.names`, which Kafka demands, may be left out. The
  `server.properties` of a single-node KRaft Kafka (`process.roles=broker,controller`) loads as it is: the
  controller is embedded and needs no listener, so listeners named in `controller.listener.names` are not opened.
- An unknown name is refused at start, with the nearest name that exists. Kafka ignores it with a warning.
- Refused at start rather than ignored: listeners with SSL or SASL; `authorizer.class.name`,
  `create.topic.policy.class.name`, `alter.config.policy.class.name` and `client.quota.callback.class`, which name
  Java classes; `config.providers`; `remote.log.storage.system.enable`; `process.roles` without either role;
  `controller.quorum.voters` that name another node.
- `listeners` and `listener.security.protocol.map` are fixed while the broker runs.
- `queued.max.request.bytes=-1` means 256 MiB for the requests of all connections together, not no bound.

Dynamic: *all* means that the config may be set for all brokers or for one, *one* for one broker only.
"""


def configs_page() -> str:
    """Every config of topics, brokers, groups and client metrics."""
    parts = [_INTRODUCTION]
    parts += _table("Topics", "broker config", TOPIC_CONFIGS.values())
    for area in AREAS:
        summary = (area.__doc__ or "").splitlines()[0].removeprefix("Broker configs: ").rstrip(".")
        parts += _table(f"Broker: {summary}", "dynamic", area.ROWS)
    parts += _table("Broker: dynamic only", "dynamic", DYNAMIC_ONLY_CONFIGS.values())
    parts += _table("Groups", "broker config", GROUP_CONFIGS.values())
    parts += _table("Client metrics", "broker config", CLIENT_METRICS_CONFIGS.values())
    return "\n".join(parts) + "\n"


def _table(title: str, column: str, rows: Iterable[ConfigDefinition]) -> list[str]:
    lines = [
        f"\n## {title}\n",
        f"| name | | type | default | valid | {column} | meaning |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda each: each.name):
        if row.internal:
            continue
        valid = row.validator.describe() if row.validator is not None else ""
        last = _mode(row) if column == "dynamic" else _synonyms(row.name)
        cells = (
            f"`{row.name}`",
            "●" if row.in_effect else "",
            row.type.name.lower(),
            _default(row),
            valid,
            last,
            row.doc,
        )
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return lines


def _default(row: ConfigDefinition) -> str:
    if row.default is NO_DEFAULT or row.default is None:
        return ""
    return to_text(row.default_value) or '""'


def _mode(row: ConfigDefinition) -> str:
    return {"read-only": "", "per-broker": "one", "cluster-wide": "all"}[row.mode.value]


def _synonyms(name: str) -> str:
    if name in TOPIC_SYNONYMS:
        return ", ".join(f"`{synonym.name}`" for synonym in TOPIC_SYNONYMS[name])
    synonym = group_synonym(name)
    return f"`{synonym}`" if synonym is not None and name in GROUP_CONFIGS else ""
