// Transactional producers.
'use strict'

const { PATIENCE_MS, Refused } = require('../serving')
const { places, promised } = require('./library')
const { delivered } = require('./records')

const FENCED = -144
const PRODUCER_FENCED = 90

/** Librdkafka has a code of its own for a producer that another one has fenced. */
const unlessFenced = promise =>
  promise.catch(error => {
    throw error.code === FENCED ? new Refused(PRODUCER_FENCED, error.message) : error
  })

const transactionCalls = library => {
  const producers = new Map()
  const producerNamed = name => {
    if (!producers.has(name)) throw new Error(`no producer is called ${name}`)
    return producers.get(name)
  }
  const asked = (name, call, ...given) => unlessFenced(promised(producerNamed(name), call, ...given))

  const txn_init = async ({ as, id, timeout_ms }) => {
    const producer = await library.producer({
      'transactional.id': id,
      'transaction.timeout.ms': timeout_ms,
      // Neither a record nor a request may outlive the transaction.
      'message.timeout.ms': Math.min(timeout_ms, PATIENCE_MS),
      'socket.timeout.ms': Math.min(timeout_ms, PATIENCE_MS)
    })
    try {
      await unlessFenced(promised(producer, 'initTransactions', PATIENCE_MS))
    } catch (error) {
      await library.closed(producer)
      throw error
    }
    producers.set(as, producer)
  }

  const txn_send = async ({ as, topic, partition, values }) => {
    const records = values.map(value => ({ partition, value, key: null }))
    const reports = await delivered(producerNamed(as), topic, records)
    for (const [error] of reports) if (error) await unlessFenced(Promise.reject(error))
    return reports.map(([, report]) => report.offset)
  }

  const txn_offsets = async ({ as, group, offsets, member }) => {
    const consumer = member ? library.consumerNamed(member) : await library.consumer({ 'group.id': group })
    try {
      await asked(as, 'sendOffsetsToTransaction', places(offsets), consumer, PATIENCE_MS)
    } finally {
      if (!member) await library.closed(consumer)
    }
  }

  const txn_begin = ({ as }) => asked(as, 'beginTransaction')
  const txn_commit = ({ as }) => asked(as, 'commitTransaction', PATIENCE_MS)
  const txn_abort = ({ as }) => asked(as, 'abortTransaction', PATIENCE_MS)

  const txn_close = async ({ as }) => {
    const producer = producerNamed(as)
    producers.delete(as)
    await library.closed(producer)
  }

  return { txn_init, txn_begin, txn_send, txn_offsets, txn_commit, txn_abort, txn_close }
}

module.exports = { transactionCalls }
