"""The embedded controller: pure functions that plan each change of the metadata.

    plan_create_topics, plan_delete_topics, plan_create_partitions, plan_elect_leaders,
    plan_alter_configs, plan_incremental_alter_configs, plan_producer_id_block,
    plan_broker_registration, plan_broker_departure, plan_directories_offline

Each gives a Plan: the records to commit and the results that are true once they are.
"""

from ottla.metadata.controller.alter_configs import plan_alter_configs, plan_incremental_alter_configs
from ottla.metadata.controller.broker_registration import (
    broker_endpoints,
    plan_broker_departure,
    plan_broker_registration,
    plan_directories_offline,
)
from ottla.metadata.controller.create_partitions import plan_create_partitions
from ottla.metadata.controller.create_topics import plan_create_topics
from ottla.metadata.controller.delete_topics import plan_delete_topics
from ottla.metadata.controller.elect_leaders import plan_elect_leaders
from ottla.metadata.controller.plan import Plan
from ottla.metadata.controller.producer_ids import ProducerIdBlock, plan_producer_id_block

__all__ = [
    "Plan",
    "ProducerIdBlock",
    "broker_endpoints",
    "plan_alter_configs",
    "plan_broker_departure",
    "plan_broker_registration",
    "plan_create_partitions",
    "plan_create_topics",
    "plan_delete_topics",
    "plan_directories_offline",
    "plan_elect_leaders",
    "plan_incremental_alter_configs",
    "plan_producer_id_block",
]
