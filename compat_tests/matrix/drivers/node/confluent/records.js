// Produce and fetch, without a group: a producer or a consumer for each call.
'use strict'

const { PATIENCE_MS, Refused, Unsupported, decoded, encoded, nameOf } = require('../serving')
const { promised } = require('./library')

const UNKNOWN_TOPIC_OR_PARTITION = 3

// The library takes a Buffer of no bytes for null, unless it has an address in memory.
const EMPTY = Buffer.alloc(1).subarray(0, 0)

const bytesOf = text => (text === '' ? EMPTY : decoded(text))

const headersOf = pairs =>
  (pairs ?? []).map(([name, value]) => {
    if (value === null) throw new Unsupported('no headers without a value')
    return { [name]: bytesOf(value) }
  })

const headersFrom = headers =>
  (headers ?? []).flatMap(header =>
    Object.entries(header).map(([name, bytes]) => {
      if (bytes.length === 0) throw new Unsupported('a header without a value is read as one with an empty value')
      return [name, encoded(bytes)]
    })
  )

const recordOf = ({ offset, key, value, headers, timestamp }) => ({
  offset,
  key: encoded(key),
  value: encoded(value),
  headers: headersFrom(headers),
  timestamp
})

/** Hand records to the library at once; what its reports say, in their order. Each outcome is [error, report]. */
const delivered = async (producer, topic, records) => {
  const reports = records.map(
    ({ partition, key, value, headers, timestamp }) =>
      new Promise(resolve => {
        const told = (error, report) => resolve([error, report])
        const bytes = headersOf(headers)
        try {
          producer.produce(topic, partition ?? null, bytesOf(value), bytesOf(key), timestamp ?? null, told, bytes)
        } catch (error) {
          resolve([error, null]) // it refuses what is too large at once
        }
      })
  )
  return Promise.all(reports)
}

const recordCalls = library => {
  const produce = async ({ topic, records, acks, codec, idempotent, max_request_bytes }) => {
    for (const { headers } of records) headersOf(headers)
    const producer = await library.producer({
      acks: acks ?? -1,
      'compression.type': codec ?? 'none',
      'enable.idempotence': idempotent ?? false,
      ...(max_request_bytes ? { 'message.max.bytes': max_request_bytes } : {})
    })
    try {
      return (await delivered(producer, topic, records)).map(([error, report]) => {
        if (!error) return { partition: report.partition, offset: Math.max(report.offset, -1) }
        return { error: library.refusal(error) < 0 ? 'LOCAL' : nameOf(library, error) }
      })
    } finally {
      await library.closed(producer)
    }
  }

  const fetch = async ({ topic, partition, offset, count, isolation }) => {
    const consumer = await library.consumer({
      'auto.offset.reset': 'error',
      'isolation.level': isolation ?? 'read_uncommitted',
      'enable.partition.eof': true,
      // It learns of the end from an empty answer, for which it would wait half a second each time.
      'fetch.wait.max.ms': count === null ? 20 : 500,
      'fetch.message.max.bytes': 10_000_000
    })
    const records = []
    let atEnd = false
    let unknown = null
    consumer.on('partition.eof', () => (atEnd = true))
    // Of a partition that is not there the library tells in an event, which has lost the code.
    consumer.on('event.error', ({ message }) => {
      if (/unknown topic or partition/i.test(message)) unknown = new Refused(UNKNOWN_TOPIC_OR_PARTITION, message)
    })
    try {
      consumer.setDefaultConsumeTimeout(100)
      consumer.setDefaultIsTimeoutOnlyForFirstMessage(true)
      consumer.assign([{ topic, partition, offset }])
      const deadline = Date.now() + PATIENCE_MS
      while (count === null ? !atEnd : records.length < count) {
        if (unknown) throw unknown
        if (Date.now() > deadline) throw new Error(`${records.length} records came`)
        const wanted = count === null ? 1000 : count - records.length
        records.push(...(await promised(consumer, 'consume', wanted)).map(recordOf))
      }
      return records
    } finally {
      await library.closed(consumer)
    }
  }

  return { produce, fetch }
}

module.exports = { delivered, recordCalls }
