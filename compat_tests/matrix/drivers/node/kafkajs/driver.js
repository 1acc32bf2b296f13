// The driver around KafkaJS.
'use strict'

const { Kafka, logLevel } = require('kafkajs')
const { version } = require('kafkajs/package.json')
const { serve } = require('../serving')
const { topicCalls } = require('./topics')
const { configCalls } = require('./configs')
const { produceCalls } = require('./produce')
const { fetchCalls } = require('./fetch')
const { offsetCalls } = require('./offsets')
const { memberCalls } = require('./members')
const { groupCalls } = require('./groups')
const { transactionCalls } = require('./transactions')

// Errors that may pass are tried again for a few seconds, not for the minutes that an application would want.
const RETRY = { initialRetryTime: 100, retries: 6, maxRetryTime: 2_000 }

/** What the parts of the driver share: the library's client, one admin, and what is open. */
class Driver {
  constructor(bootstrap) {
    this.logListeners = new Set()
    this.kafka = new Kafka({
      clientId: 'ottla-matrix',
      brokers: [bootstrap],
      retry: RETRY,
      logLevel: logLevel.WARN,
      logCreator: () => entry => this.log(entry)
    })
    this.admins = null
    this.open = new Set()
    this.calls = {
      version: async () => ({ library: 'kafkajs', version }),
      ...topicCalls(this),
      ...configCalls(this),
      ...produceCalls(this),
      ...fetchCalls(this),
      ...offsetCalls(this),
      ...memberCalls(this),
      ...groupCalls(this),
      ...transactionCalls(this)
    }
  }

  /** The admin client, connected at its first use. */
  async admin() {
    this.admins ??= this.connected(this.kafka.admin())
    return this.admins
  }

  /** Connect a client of the library; it is closed with the driver if nobody did before. */
  async connected(client) {
    await client.connect()
    this.open.add(client)
    return client
  }

  async closed(client) {
    this.open.delete(client)
    await client.disconnect()
  }

  /** The protocol's error code in an error of the library: in it, in what caused it, or in the first of many. */
  refusal(error) {
    for (let cause = error; cause; cause = cause.cause ?? cause.errors?.[0] ?? null) {
      if (typeof cause.code !== 'number' || !cause.type) continue
      const unknown = /Unknown error code (-?\d+)/.exec(cause.message) // newer than the library's own table
      return unknown ? Number(unknown[1]) : cause.code
    }
    return null
  }

  log(entry) {
    console.error(JSON.stringify(entry))
    for (const listener of this.logListeners) listener(entry)
  }

  async close() {
    await Promise.allSettled([...this.open].map(client => client.disconnect()))
  }
}

serve(new Driver(process.argv[2]))
