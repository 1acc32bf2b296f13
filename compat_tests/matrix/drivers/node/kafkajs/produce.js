// Producing. A send of the library is one batch for each partition, and its answer one base offset for each, so the
// driver notes which record the partitioner put where. A send fails as a whole if any of its batches does: records
// that name their partition are therefore sent by one send for each.
'use strict'

const { Partitioners } = require('kafkajs')
const { PATIENCE_MS, Unsupported, decoded, nameOf } = require('../serving')
const { codecNamed } = require('./codecs')

/** The library takes an object of names, with all values of a name together. */
const headersOf = pairs => {
  const headers = {}
  let last = null
  for (const [name, value] of pairs ?? []) {
    if (value === null) throw new Unsupported('no headers without a value')
    if (name in headers && name !== last) throw new Unsupported('headers of one name stand side by side')
    const values = (headers[name] ??= [])
    values.push(decoded(value))
    last = name
  }
  return headers
}

const messageOf = ({ partition, key, value, headers, timestamp }) => ({
  ...(partition === null || partition === undefined ? {} : { partition }),
  key: decoded(key),
  value: decoded(value),
  headers: headersOf(headers),
  ...(timestamp === null || timestamp === undefined ? {} : { timestamp: String(timestamp) })
})

/** The library's own partitioner, which remembers what it chose for each message. */
const rememberingPartitioner = chosen => () => {
  const choose = Partitioners.DefaultPartitioner()
  return given => {
    const partition = choose(given)
    chosen.set(given.message, partition)
    return partition
  }
}

/**
 * Send all messages at once; the partition and the offset of each, in their order. The library drops without a word what
 * is for a partition that it does not know.
 */
const sent = async (send, chosen, request) => {
  const answers = await send({ timeout: PATIENCE_MS, ...request })
  const next = new Map(answers.map(({ partition, baseOffset }) => [partition, Number(baseOffset)]))
  return request.messages.map(message => {
    const partition = chosen.get(message)
    if (request.acks === 0) return { partition, offset: -1 }
    if (!next.has(partition)) return { error: 'LOCAL' }
    const offset = next.get(partition)
    next.set(partition, offset + 1)
    return { partition, offset }
  })
}

const byPartition = messages => {
  const together = new Map()
  for (const message of messages) {
    if (!together.has(message.partition)) together.set(message.partition, [])
    together.get(message.partition).push(message)
  }
  return together
}

const produceCalls = driver => {
  const produce = async ({ topic, records, acks, codec, idempotent, max_request_bytes }) => {
    const compression = codecNamed(codec)
    const largest = Math.max(...records.map(({ value }) => decoded(value)?.length ?? 0))
    if (largest > (max_request_bytes ?? Infinity)) throw new Unsupported('the library has no limit of its own')
    const chosen = new Map()
    const settings = { createPartitioner: rememberingPartitioner(chosen), idempotent: idempotent ?? false }
    if (idempotent) settings.maxInFlightRequests = 1
    const producer = await driver.connected(driver.kafka.producer(settings))
    const messages = records.map(messageOf)
    const told = new Map()
    const send = async together => {
      try {
        const found = await sent(producer.send, chosen, { topic, messages: together, acks: acks ?? -1, compression })
        together.forEach((message, index) => told.set(message, found[index]))
      } catch (error) {
        const name = nameOf(driver, error)
        for (const message of together) told.set(message, { error: name })
      }
    }
    try {
      await Promise.all([...byPartition(messages).values()].map(send))
      return messages.map(message => told.get(message))
    } finally {
      await driver.closed(producer)
    }
  }

  return { produce }
}

module.exports = { produceCalls, rememberingPartitioner, sent }
