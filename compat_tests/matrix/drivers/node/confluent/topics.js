// Topics, and offsets in them. The library tells neither the id of the cluster nor its controller.
'use strict'

const RdKafka = require('@confluentinc/kafka-javascript')
const { PATIENCE_MS, Refused, Unsupported, nameOf, outcome } = require('../serving')
const { promised } = require('./library')

const described = ({ partitions }) => ({
  error: null,
  partitions: partitions.map(({ partition, leader, replicas, isr }) => ({
    partition,
    leader: leader?.id ?? -1,
    replicas: replicas.map(({ id }) => id),
    isr: isr.map(({ id }) => id)
  }))
})

const topicCalls = library => {
  const each = async (names, attempt) => {
    const outcomes = {}
    for (const name of names) outcomes[name] = await outcome(library, () => attempt(library.admin(), name))
    return outcomes
  }

  const metadata = async ({ topics }) => {
    const consumer = await library.consumer({})
    try {
      const { brokers, topics: all } = await promised(consumer, 'getMetadata', { timeout: PATIENCE_MS })
      const found = {}
      const names = topics ?? all.map(({ name }) => name)
      if (names.length > 0) {
        for (const topic of await promised(library.admin(), 'describeTopics', names, { timeout: PATIENCE_MS })) {
          const failed = topic.error && { error: nameOf(library, topic.error), partitions: [] }
          found[topic.name] = failed || described(topic)
        }
      }
      return { cluster_id: null, controller: null, brokers, topics: found }
    } finally {
      await library.closed(consumer)
    }
  }

  const create_topics = async ({ topics, validate_only }) => {
    if (validate_only) throw new Unsupported('it cannot only validate')
    const wanted = new Map(topics.map(topic => [topic.name, topic]))
    return each(wanted.keys(), (admin, name) => {
      const { partitions, replication, configs } = wanted.get(name)
      const topic = { topic: name, num_partitions: partitions, replication_factor: replication, config: configs }
      return promised(admin, 'createTopic', topic, PATIENCE_MS)
    })
  }

  const delete_topics = ({ topics }) => each(topics, (admin, name) => promised(admin, 'deleteTopic', name, PATIENCE_MS))

  const create_partitions = ({ topics }) =>
    each(Object.keys(topics), (admin, name) => promised(admin, 'createPartitions', name, topics[name], PATIENCE_MS))

  const delete_records = async ({ topic, before }) => {
    const wanted = Object.entries(before).map(([partition, offset]) => ({
      topic,
      partition: Number(partition),
      offset
    }))
    const found = await promised(library.admin(), 'deleteRecords', wanted, { timeout: PATIENCE_MS })
    return Object.fromEntries(
      found.map(({ partition, lowWatermark, error }) => [partition, error ? nameOf(library, error) : lowWatermark])
    )
  }

  const list_offsets = async ({ topic, partition, at }) => {
    const { EARLIEST, LATEST, MAX_TIMESTAMP } = RdKafka.OffsetSpec
    const named = { earliest: EARLIEST, latest: LATEST, max_timestamp: MAX_TIMESTAMP }
    const asked = [{ topic, partition, offset: named[at] ?? new RdKafka.OffsetSpec(at) }]
    const [found] = await promised(library.admin(), 'listOffsets', asked, { timeout: PATIENCE_MS })
    if (found.error) throw new Refused(found.error.code, found.error.message)
    return { offset: found.offset, timestamp: found.timestamp }
  }

  return { metadata, create_topics, delete_topics, create_partitions, delete_records, list_offsets }
}

module.exports = { topicCalls }
