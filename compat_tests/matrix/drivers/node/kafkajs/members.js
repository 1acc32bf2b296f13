// Members of groups. The library pushes records and knows no poll: what it pushed is kept until it is asked for, and
// forgotten with each rebalance, after which it is read again from what was committed.
'use strict'

const { PartitionAssigners } = require('kafkajs')
const { Unsupported, encoded, pause } = require('../serving')

const HEARTBEAT_MS = 200
const FETCH_WAIT_MS = 200
const SESSION_MS = 10_000
const REBALANCE_MS = 10_000
const POLL_STEP_MS = 10

class Member {
  constructor(consumer) {
    this.consumer = consumer
    this.assignment = {}
    this.waiting = []
    this.positions = new Map()
    this.crash = null
    consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => this.joined(payload.memberAssignment))
    consumer.on(consumer.events.REBALANCING, () => this.joined({}))
    consumer.on(consumer.events.CRASH, ({ payload }) => {
      if (!payload.restart) this.crash = payload.error
    })
  }

  joined(assignment) {
    this.assignment = assignment
    this.waiting = []
  }

  came(topic, partition, { offset, key, value }) {
    this.waiting.push({ topic, partition, offset: Number(offset), key: encoded(key), value: encoded(value) })
  }

  taken() {
    const records = this.waiting
    this.waiting = []
    for (const { topic, partition, offset } of records) this.positions.set(`${topic} ${partition}`, offset + 1)
    return records
  }
}

const checked = ({ assignor, protocol, remote_assignor, instance_id }) => {
  if (protocol === 'consumer' || remote_assignor) throw new Unsupported('only the classic group protocol')
  if (instance_id) throw new Unsupported('no static membership')
  if (assignor && assignor !== 'roundrobin') throw new Unsupported(`no assignor ${assignor}, only round robin`)
}

const memberCalls = driver => {
  const members = new Map()
  driver.memberNamed = name => {
    if (!members.has(name)) throw new Error(`no member is called ${name}`)
    return members.get(name)
  }

  const join = async given => {
    checked(given)
    const session_ms = given.session_ms ?? SESSION_MS
    const consumer = await driver.connected(
      driver.kafka.consumer({
        groupId: given.group,
        partitionAssigners: [PartitionAssigners.roundRobin],
        sessionTimeout: session_ms,
        rebalanceTimeout: REBALANCE_MS,
        heartbeatInterval: Math.min(HEARTBEAT_MS, session_ms / 3),
        maxWaitTimeInMs: FETCH_WAIT_MS,
        allowAutoTopicCreation: false,
        readUncommitted: given.isolation !== 'read_committed'
      })
    )
    const member = new Member(consumer)
    const topics = given.pattern ? [new RegExp(given.pattern)] : given.topics
    await consumer.subscribe({ topics, fromBeginning: true })
    members.set(given.as, member)
    const eachMessage = async ({ topic, partition, message }) => member.came(topic, partition, message)
    const running = consumer.run({ autoCommit: false, eachMessage })
    running.catch(error => (member.crash = error)) // it ends when the first join does, which nobody waits for
  }

  const poll = async ({ as, wait_ms }) => {
    const member = driver.memberNamed(as)
    const deadline = Date.now() + wait_ms
    do {
      if (member.crash) throw member.crash
      await pause(Math.min(POLL_STEP_MS, wait_ms))
    } while (member.waiting.length === 0 && Date.now() < deadline)
    const assignment = {}
    for (const [topic, partitions] of Object.entries(member.assignment)) {
      if (partitions.length > 0) assignment[topic] = [...partitions].sort((one, other) => one - other)
    }
    return { assignment, records: member.taken() }
  }

  const commit = async ({ as, offsets }) => {
    const member = driver.memberNamed(as)
    const wanted = []
    if (offsets) {
      for (const [topic, partitions] of Object.entries(offsets)) {
        for (const [partition, offset] of Object.entries(partitions)) {
          wanted.push({ topic, partition: Number(partition), offset: String(offset) })
        }
      }
    } else {
      for (const [place, offset] of member.positions) {
        const [topic, partition] = place.split(' ')
        wanted.push({ topic, partition: Number(partition), offset: String(offset) })
      }
    }
    await member.consumer.commitOffsets(wanted)
  }

  const leave = async ({ as }) => {
    const member = driver.memberNamed(as)
    members.delete(as)
    await driver.closed(member.consumer)
  }

  return { join, poll, commit, leave }
}

module.exports = { memberCalls }
