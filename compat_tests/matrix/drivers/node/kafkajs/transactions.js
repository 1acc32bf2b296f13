// Transactions. The library asks for its producer id when the first transaction begins: `txn_init` begins one therefore,
// which `txn_begin` then takes; one without records ends without a request.
'use strict'

const { PATIENCE_MS, decoded } = require('../serving')
const { rememberingPartitioner, sent } = require('./produce')

const transactionCalls = driver => {
  const producers = new Map()
  const producerNamed = name => {
    if (!producers.has(name)) throw new Error(`no producer is called ${name}`)
    return producers.get(name)
  }

  const txn_init = async ({ as, id, timeout_ms }) => {
    const chosen = new Map()
    const client = await driver.connected(
      driver.kafka.producer({
        transactionalId: id,
        transactionTimeout: timeout_ms ?? 60_000,
        maxInFlightRequests: 1,
        createPartitioner: rememberingPartitioner(chosen)
      })
    )
    try {
      producers.set(as, { client, chosen, ready: await client.transaction(), running: null })
    } catch (error) {
      await driver.closed(client)
      throw error
    }
  }

  const txn_begin = async ({ as }) => {
    const producer = producerNamed(as)
    producer.running = producer.ready ?? (await producer.client.transaction())
    producer.ready = null
  }

  const running = name => {
    const transaction = producerNamed(name).running
    if (!transaction) throw new Error('no transaction has begun')
    return transaction
  }

  const txn_send = async ({ as, topic, partition, values }) => {
    const messages = values.map(value => ({ value: decoded(value), partition }))
    const found = await sent(running(as).send, producerNamed(as).chosen, { topic, messages, timeout: PATIENCE_MS })
    return found.map(({ offset }) => offset)
  }

  const txn_offsets = async ({ as, group, offsets }) => {
    // TxnOffsetCommit of the library is of a version without the member and its generation.
    const topics = Object.entries(offsets).map(([topic, partitions]) => ({
      topic,
      partitions: Object.entries(partitions).map(([partition, offset]) => ({
        partition: Number(partition),
        offset: String(offset)
      }))
    }))
    await running(as).sendOffsets({ consumerGroupId: group, topics })
  }

  const txn_commit = async ({ as }) => running(as).commit()
  const txn_abort = async ({ as }) => running(as).abort()

  const txn_close = async ({ as }) => {
    const { client } = producerNamed(as)
    producers.delete(as)
    await driver.closed(client)
  }

  return { txn_init, txn_begin, txn_send, txn_offsets, txn_commit, txn_abort, txn_close }
}

module.exports = { transactionCalls }
