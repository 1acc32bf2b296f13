// Reading one partition. The library reads in groups alone: a group of its own is made for each read, its member seeks,
// leaves the other partitions alone, and the group is deleted afterwards.
'use strict'

const { PATIENCE_MS, Refused, Unsupported, encoded } = require('../serving')

const OFFSET_OUT_OF_RANGE = 1
const UNKNOWN_TOPIC_OR_PARTITION = 3
const FETCH_WAIT_MS = 200

const headersOf = headers =>
  Object.entries(headers ?? {}).flatMap(([name, value]) =>
    [value].flat().map(each => [name, encoded(each)])
  )

const recordOf = ({ offset, key, value, headers, timestamp }) => ({
  offset: Number(offset),
  key: encoded(key),
  value: encoded(value),
  headers: headersOf(headers),
  timestamp: Number(timestamp)
})

/** A codec whose package is not usable on this machine is none that the driver offers. */
const unlessMissing = error =>
  error.name === 'KafkaJSNotImplemented' || error.cause?.name === 'KafkaJSNotImplemented'
    ? new Unsupported(error.message)
    : error

let reads = 0

const fetchCalls = driver => {
  /** Resolves with the records when there are enough of them, or when a whole fetch at the end brought nothing. */
  const reading = (consumer, { topic, partition, offset, count, end, others }) => {
    const records = []
    let position = offset
    let seen = true
    return new Promise((resolve, reject) => {
      const stop = () => resolve(count === null ? records : records.slice(0, count))
      const step = () => {
        if (count === null ? position >= end : records.length >= count) stop()
      }
      const outOfRange = ({ log }) => {
        if (/Offset out of range/.test(log.message) && log.topic === topic) {
          reject(new Refused(OFFSET_OUT_OF_RANGE, log.message)) // the library goes on elsewhere, the call does not
        }
      }
      driver.logListeners.add(outOfRange)
      setTimeout(() => reject(new Error(`${records.length} records came`)), PATIENCE_MS).unref()
      consumer.on(consumer.events.CRASH, ({ payload }) => reject(unlessMissing(payload.error)))
      consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload }) => {
        if (payload.partition !== partition) return
        seen = true
        position = Math.max(position, Number(payload.lastOffset) + 1)
        step()
      })
      consumer.on(consumer.events.FETCH, () => {
        // Aborted records and open transactions may keep a reader before the end.
        if (!seen && count === null) stop()
        seen = false
      })
      const eachBatch = async ({ batch }) => {
        if (batch.partition === partition) records.push(...batch.messages.map(recordOf))
      }
      consumer
        .run({ autoCommit: false, eachBatch })
        .then(() => {
          consumer.seek({ topic, partition, offset: String(offset) })
          if (others.length > 0) consumer.pause([{ topic, partitions: others }])
        })
        .catch(reject)
    }).finally(() => driver.logListeners.clear())
  }

  const fetch = async ({ topic, partition, offset, count, isolation }) => {
    const admin = await driver.admin()
    const partitions = await admin.fetchTopicOffsets(topic)
    const bounds = partitions.find(found => found.partition === partition)
    if (!bounds) throw new Refused(UNKNOWN_TOPIC_OR_PARTITION, `no partition ${partition} in the metadata`)
    const groupId = `ottla-matrix-read-${process.pid}-${reads++}`
    const consumer = await driver.connected(
      driver.kafka.consumer({
        groupId,
        allowAutoTopicCreation: false,
        readUncommitted: isolation !== 'read_committed',
        maxWaitTimeInMs: FETCH_WAIT_MS
      })
    )
    try {
      await consumer.subscribe({ topic, fromBeginning: true })
      const others = partitions.map(found => found.partition).filter(number => number !== partition)
      const wanted = { topic, partition, offset, count: count ?? null, end: Number(bounds.high), others }
      return await reading(consumer, wanted)
    } finally {
      await driver.closed(consumer)
      await admin.deleteGroups([groupId]).catch(() => null)
    }
  }

  return { fetch }
}

module.exports = { fetchCalls }
