// The codecs: the library brings gzip along, the others are packages of their own that are plugged in.
'use strict'

const { CompressionCodecs, CompressionTypes } = require('kafkajs')
const { Unsupported } = require('../serving')

const PLUGGED_IN = {
  [CompressionTypes.Snappy]: () => require('kafkajs-snappy'),
  [CompressionTypes.LZ4]: () => new (require('kafkajs-lz4'))().codec,
  [CompressionTypes.ZSTD]: () => require('@kafkajs/zstd')()
}
const NAMED = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD
}
const missing = new Map()

for (const [type, load] of Object.entries(PLUGGED_IN)) {
  try {
    CompressionCodecs[type] = load()
  } catch (error) {
    missing.set(Number(type), error) // its native part was not built on this machine
  }
}

/** The library's number of a codec. */
const codecNamed = name => {
  const type = NAMED[name ?? 'none']
  if (missing.has(type)) throw new Unsupported(`no ${name} here: ${missing.get(type).message.split('\n')[0]}`)
  return type
}

module.exports = { codecNamed }
