"""`quorum-state`: the last election that this node took part in, one line of JSON (KIP-595, KIP-853).

Version 0 goes with a static quorum (kraft.version 0) and lists the voters; version 1 goes with a dynamic one,
whose voters stand in the log. Ottla votes for itself alone, so it leads every epoch that it writes here.
"""

from pathlib import Path

from ottla.log_store.files import OS_FILE_SYSTEM, write_file
from ottla.metadata.errors import MetadataError
from ottla.wire.dataclass import dataclass
from ottla.wire.uuids import ZERO_UUID, format_uuid

FILE_NAME = "quorum-state"


@dataclass(frozen=True, slots=True)
class QuorumState:
    """What matters of the file: the epoch reached, and the voters where the file names them."""

    leader_epoch: int
    voters: tuple[int, ...] | None


def read_quorum_state(directory: Path) -> QuorumState | None:
    """The file of the metadata log's directory, None if there is none."""
    path = directory / FILE_NAME
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    import json

    try:
        values = json.loads(text)
        version = values["data_version"]
        if version not in (0, 1):
            raise MetadataError(f"{path} has data_version {version}, but only 0 and 1 are known.")
        voters = values.get("currentVoters") if version == 0 else None
        return QuorumState(
            leader_epoch=int(values["leaderEpoch"]),
            voters=tuple(int(voter["voterId"]) for voter in voters) if voters else None,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise MetadataError(f"{path} is not a quorum state that can be read.") from error


def write_quorum_state(directory: Path, node_id: int, leader_epoch: int, kraft_version: int) -> None:
    """Write down durably that this node leads `leader_epoch`."""
    # As text: writing it is a part of the first start, and what writes JSON is not needed for anything else then.
    if kraft_version == 0:
        text = (
            f'{{"clusterId":"","leaderId":{node_id},"leaderEpoch":{leader_epoch},"votedId":-1,"appliedOffset":0,'
            f'"currentVoters":[{{"voterId":{node_id}}}],"data_version":0}}'
        )
    else:
        text = (
            f'{{"leaderId":{node_id},"leaderEpoch":{leader_epoch},"votedId":-1,'
            f'"votedDirectoryId":"{format_uuid(ZERO_UUID)}","data_version":1}}'
        )
    write_file(OS_FILE_SYSTEM, str(directory / FILE_NAME), text.encode(), sync=True)
