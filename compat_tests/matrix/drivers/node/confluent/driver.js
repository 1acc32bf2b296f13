// The driver around @confluentinc/kafka-javascript.
'use strict'

const RdKafka = require('@confluentinc/kafka-javascript')
const { version } = require('@confluentinc/kafka-javascript/package.json')
const { serve } = require('../serving')
const { Library } = require('./library')
const { topicCalls } = require('./topics')
const { recordCalls } = require('./records')
const { memberCalls } = require('./members')
const { groupCalls } = require('./groups')
const { transactionCalls } = require('./transactions')

const library = new Library(process.argv[2])
library.calls = {
  version: async () => ({
    library: '@confluentinc/kafka-javascript',
    version: `${version} (librdkafka ${RdKafka.librdkafkaVersion})`
  }),
  ...topicCalls(library),
  ...recordCalls(library),
  ...memberCalls(library),
  ...groupCalls(library),
  ...transactionCalls(library)
}

serve(library)
