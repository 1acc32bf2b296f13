// Topics and the cluster: metadata, creation, deletion, partitions, records.
'use strict'

const { PATIENCE_MS, nameOf, outcome } = require('../serving')

const described = ({ partitions }) => ({
  error: null,
  partitions: partitions
    .map(({ partitionId, leader, replicas, isr }) => ({ partition: partitionId, leader, replicas, isr }))
    .sort((one, other) => one.partition - other.partition)
})

const topicCalls = driver => {
  const metadata = async ({ topics }) => {
    const admin = await driver.admin()
    const { brokers, controller, clusterId } = await admin.describeCluster()
    const found = {}
    if (topics === null) {
      for (const topic of (await admin.fetchTopicMetadata()).topics) found[topic.name] = described(topic)
    }
    for (const name of topics ?? []) {
      // One at a time: an error of one topic is an error of the whole call.
      try {
        found[name] = described((await admin.fetchTopicMetadata({ topics: [name] })).topics[0])
      } catch (error) {
        found[name] = { error: nameOf(driver, error), partitions: [] }
      }
    }
    const listed = brokers.map(({ nodeId, host, port }) => ({ id: nodeId, host, port }))
    return { cluster_id: clusterId, controller, brokers: listed, topics: found }
  }

  const create_topics = async ({ topics, validate_only }) => {
    const admin = await driver.admin()
    const wanted = topics.map(({ name, partitions, replication, configs }) => ({
      topic: name,
      numPartitions: partitions,
      replicationFactor: replication,
      configEntries: Object.entries(configs ?? {}).map(([key, value]) => ({ name: key, value }))
    }))
    const outcomes = Object.fromEntries(topics.map(({ name }) => [name, null]))
    try {
      const created = await admin.createTopics({
        topics: wanted,
        validateOnly: validate_only ?? false,
        // Told to wait, it takes for a failure that a KRaft broker learns of the topic a moment later.
        waitForLeaders: false,
        timeout: PATIENCE_MS
      })
      // The library answers false, not an error, when every one of them exists.
      if (!created) for (const name in outcomes) outcomes[name] = 'TOPIC_ALREADY_EXISTS'
    } catch (error) {
      if (!error.errors) throw error
      for (const each of error.errors) outcomes[each.topic] = nameOf(driver, each)
    }
    return outcomes
  }

  const each = async (names, attempt) => {
    const outcomes = {}
    for (const name of names) outcomes[name] = await outcome(driver, () => attempt(name))
    return outcomes
  }

  const delete_topics = async ({ topics }) => {
    const admin = await driver.admin()
    return each(topics, name => admin.deleteTopics({ topics: [name], timeout: PATIENCE_MS }))
  }

  const create_partitions = async ({ topics }) => {
    const admin = await driver.admin()
    return each(Object.keys(topics), name =>
      admin.createPartitions({ topicPartitions: [{ topic: name, count: topics[name] }], timeout: PATIENCE_MS })
    )
  }

  const delete_records = async ({ topic, before }) => {
    const admin = await driver.admin()
    await admin.fetchTopicOffsets(topic) // deleteTopicRecords asks nobody for the leaders
    const outcomes = {}
    for (const [partition, offset] of Object.entries(before)) {
      try {
        const partitions = [{ partition: Number(partition), offset: String(offset) }]
        await admin.deleteTopicRecords({ topic, partitions })
        // The library keeps the low watermark of the answer to itself.
        const offsets = await admin.fetchTopicOffsets(topic)
        outcomes[partition] = Number(offsets.find(found => found.partition === Number(partition)).low)
      } catch (error) {
        outcomes[partition] = nameOf(driver, error.partitions?.[0]?.error ?? error.cause?.partitions?.[0]?.error ?? error)
      }
    }
    return outcomes
  }

  const describe_cluster = async () => {
    const { brokers, controller, clusterId } = await (await driver.admin()).describeCluster()
    return { cluster_id: clusterId, controller, brokers: brokers.map(({ nodeId }) => nodeId) }
  }

  return { metadata, create_topics, delete_topics, create_partitions, delete_records, describe_cluster }
}

module.exports = { topicCalls }
