// What all parts of the driver around Confluent's client use: its settings, its callbacks as promises, its error codes.
// The older of its two interfaces is driven, which has more of librdkafka; the newer one stands on it.
'use strict'

const RdKafka = require('@confluentinc/kafka-javascript')
const { PATIENCE_MS } = require('../serving')

// Codes of librdkafka's own that stand for exactly one answer of the broker.
const AUTO_OFFSET_RESET = -140
const OFFSET_OUT_OF_RANGE = 1

/** A function that ends with a callback, as a promise. */
const promised = (target, name, ...given) =>
  new Promise((resolve, reject) => {
    target[name](...given, (error, result) => (error ? reject(error) : resolve(result)))
  })

const places = offsets =>
  Object.entries(offsets).flatMap(([topic, partitions]) =>
    Object.entries(partitions).map(([partition, offset]) => ({ topic, partition: Number(partition), offset }))
  )

class Library {
  constructor(bootstrap) {
    this.settings = {
      'bootstrap.servers': bootstrap,
      'client.id': 'ottla-matrix',
      log_level: 0,
      'socket.timeout.ms': PATIENCE_MS,
      // What it does not know it asks for again soon, and it does not hope long for a topic that is not there.
      'topic.metadata.refresh.fast.interval.ms': 20,
      'topic.metadata.propagation.max.ms': 1_000,
      'retry.backoff.ms': 20,
      'retry.backoff.max.ms': 100
    }
    this.open = new Set()
    this.adminClient = null
  }

  admin() {
    this.adminClient ??= RdKafka.AdminClient.create(this.settings)
    return this.adminClient
  }

  async connected(client) {
    await promised(client, 'connect', { allTopics: false, timeout: PATIENCE_MS })
    this.open.add(client)
    return client
  }

  async closed(client) {
    this.open.delete(client)
    await promised(client, 'disconnect')
  }

  /** A consumer that commits nothing by itself. */
  consumer(settings) {
    const own = { 'group.id': 'unused', 'enable.auto.commit': false, ...settings }
    return this.connected(new RdKafka.KafkaConsumer({ ...this.settings, ...own }))
  }

  /** A producer that gives up in time, and hands its reports to whoever is the opaque of a record. */
  async producer(settings) {
    const own = { 'linger.ms': 2, 'message.timeout.ms': PATIENCE_MS, dr_cb: true, ...settings }
    const producer = new RdKafka.Producer({ ...this.settings, ...own })
    producer.on('delivery-report', (error, report) => report.opaque(error, report))
    producer.on('event.error', error => console.error('producer:', error))
    await this.connected(producer)
    producer.setPollInterval(5)
    return producer
  }

  refusal(error) {
    if (typeof error.code !== 'number') return null
    return error.code === AUTO_OFFSET_RESET ? OFFSET_OUT_OF_RANGE : error.code
  }

  async close() {
    await Promise.allSettled([...this.open].map(client => this.closed(client)))
    this.adminClient?.disconnect()
  }
}

module.exports = { Library, places, promised }
