// Members of groups.
'use strict'

const { PATIENCE_MS, Refused, Unsupported, encoded, pause } = require('../serving')
const { places, promised } = require('./library')

const ASSIGNORS = ['range', 'roundrobin', 'cooperative-sticky']
const FENCED = -144
const FENCED_INSTANCE_ID = 82
const HEARTBEAT_MS = 200
const AT_ONCE = 1000
// COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR
const COORDINATOR_NOT_READY = [14, 15, 16]

const settingsOf = ({ group, assignor, protocol, remote_assignor, instance_id, isolation, session_ms }) => {
  if (assignor && !ASSIGNORS.includes(assignor)) throw new Unsupported(`librdkafka has no assignor ${assignor}`)
  const classic = protocol !== 'consumer'
  const settings = {
    'group.id': group,
    'group.protocol': protocol,
    'auto.offset.reset': 'earliest',
    'partition.assignment.strategy': assignor,
    'group.remote.assignor': remote_assignor,
    'group.instance.id': instance_id,
    'isolation.level': isolation,
    'session.timeout.ms': classic ? session_ms : null,
    'heartbeat.interval.ms': classic ? HEARTBEAT_MS : null,
    'fetch.wait.max.ms': 100,
    rebalance_cb: true
  }
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== null && value !== undefined))
}

/**
 * Commit and wait. The call that blocks is the one that tells what the broker said of a partition; it does not ask
 * again by itself when the coordinator was not ready.
 */
const committed = async (consumer, offsets) => {
  const deadline = Date.now() + PATIENCE_MS
  for (;;) {
    try {
      return consumer.commitSync(offsets)
    } catch (error) {
      if (!COORDINATOR_NOT_READY.includes(error.code) || Date.now() > deadline) throw error
      await pause(100)
    }
  }
}

const memberCalls = library => {
  const members = new Map()
  const memberNamed = name => {
    if (!members.has(name)) throw new Error(`no member is called ${name}`)
    return members.get(name)
  }
  library.consumerNamed = name => memberNamed(name).consumer

  const join = async given => {
    const consumer = await library.consumer(settingsOf(given))
    consumer.setDefaultIsTimeoutOnlyForFirstMessage(true)
    consumer.on('rebalance.error', error => console.error('rebalance:', error))
    const pattern = given.pattern && (given.pattern.startsWith('^') ? given.pattern : `^${given.pattern}`)
    consumer.subscribe(pattern ? [pattern] : given.topics)
    members.set(given.as, { consumer, positions: new Map() })
  }

  const poll = async ({ as, wait_ms }) => {
    const { consumer, positions } = memberNamed(as)
    consumer.setDefaultConsumeTimeout(wait_ms)
    let messages
    try {
      messages = await promised(consumer, 'consume', AT_ONCE)
    } catch (error) {
      if (error.code === FENCED) throw new Refused(FENCED_INSTANCE_ID, error.message)
      throw error
    }
    await pause(0) // what the library does upon a rebalance is done in turns of their own
    for (const { topic, partition, offset } of messages) positions.set(`${topic} ${partition}`, offset + 1)
    const assignment = {}
    for (const { topic, partition } of consumer.assignments()) (assignment[topic] ??= []).push(partition)
    for (const partitions of Object.values(assignment)) partitions.sort((one, other) => one - other)
    const records = messages.map(({ topic, partition, offset, key, value }) => ({
      topic,
      partition,
      offset,
      key: encoded(key),
      value: encoded(value)
    }))
    return { assignment, records }
  }

  const commit = async ({ as, offsets }) => {
    const { consumer, positions } = memberNamed(as)
    const owned = new Set(consumer.assignments().map(({ topic, partition }) => `${topic} ${partition}`))
    const polled = [...positions].filter(([place]) => owned.has(place)).map(([place, offset]) => {
      const [topic, partition] = place.split(' ')
      return { topic, partition: Number(partition), offset }
    })
    await committed(consumer, offsets ? places(offsets) : polled)
  }

  const leave = async ({ as }) => {
    const { consumer } = memberNamed(as)
    members.delete(as)
    await library.closed(consumer)
  }

  // The library has no call for it but a commit of one who has not joined, which is the same request.
  const alter_group_offsets = async ({ group, offsets }) => {
    const consumer = await library.consumer({ 'group.id': group })
    try {
      await committed(consumer, places(offsets))
    } finally {
      await library.closed(consumer)
    }
  }

  return { join, poll, commit, leave, alter_group_offsets }
}

module.exports = { memberCalls }
