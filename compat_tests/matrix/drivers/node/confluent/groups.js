// Groups as an admin sees them.
'use strict'

const { PATIENCE_MS, Refused, nameOf } = require('../serving')
const { promised } = require('./library')

const STATES = ['Unknown', 'PreparingRebalance', 'CompletingRebalance', 'Stable', 'Dead', 'Empty']
const TYPES = ['unknown', 'consumer', 'classic']

const memberOf = ({ clientId, groupInstanceId, assignment }) => {
  const found = {}
  for (const { topic, partition } of assignment?.topicPartitions ?? []) (found[topic] ??= []).push(partition)
  return { client_id: clientId, instance_id: groupInstanceId || null, assignment: found }
}

const groupCalls = library => {
  const options = { timeout: PATIENCE_MS }

  const list_groups = async () => {
    const { groups, errors } = await promised(library.admin(), 'listGroups', options)
    for (const error of errors ?? []) throw error
    return Object.fromEntries(
      groups.map(({ groupId, state, type }) => [groupId, { state: STATES[state], type: TYPES[type] }])
    )
  }

  const describe_group = async ({ group }) => {
    const { groups } = await promised(library.admin(), 'describeGroups', [group], options)
    const { error, state, type, partitionAssignor, members } = groups[0]
    if (error) throw new Refused(error.code, error.message)
    return { state: STATES[state], type: TYPES[type], protocol: partitionAssignor, members: members.map(memberOf) }
  }

  const delete_groups = async ({ groups }) => {
    const found = await promised(library.admin(), 'deleteGroups', groups, options)
    return Object.fromEntries(
      found.map(({ groupId, error }) => [groupId, error ? nameOf(library, error) : null])
    )
  }

  const committed = async ({ group, topic, partitions }) => {
    const asked = { groupId: group, partitions: partitions.map(partition => ({ topic, partition })) }
    const [found] = await promised(library.admin(), 'listConsumerGroupOffsets', [asked], options)
    if (found.error) throw new Refused(found.error.code, found.error.message)
    return Object.fromEntries(
      found.partitions.map(({ partition, offset }) => [partition, offset >= 0 ? offset : -1])
    )
  }

  return { list_groups, describe_group, delete_groups, committed }
}

module.exports = { groupCalls }
