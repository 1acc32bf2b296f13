// What both drivers share: lines in, lines out, one call at a time, and what an error is called.
//
// A driver is an object with an async function for each call that its library has; the function takes the call's
// arguments as one object. `refusal` of the driver finds the code of the protocol in an error of the library, or null.
'use strict'

const readline = require('node:readline')

// Below the 30 seconds that any call may take.
const PATIENCE_MS = 20_000
const LAST_PATIENCE_MS = 28_000

// Kafka's names of its error codes; whoever starts the driver hands them over, so that they stand in one place only.
const NAMES = JSON.parse(process.env.KAFKA_ERROR_NAMES ?? '{}')

class Unsupported extends Error {}

/** The broker said no: `code` is the protocol's. */
class Refused extends Error {
  constructor(code, message) {
    super(message)
    this.code = code
  }
}

const errorName = code => NAMES[code] ?? 'LOCAL'

/** What a call answers for one topic, group or partition: null when all went well, else the name of the error. */
const outcome = async (driver, attempt) => {
  try {
    await attempt()
    return null
  } catch (error) {
    return nameOf(driver, error)
  }
}

/** The name of the code in a library's error; one without a code ends the whole call. */
const nameOf = (driver, error) => {
  const code = error instanceof Refused ? error.code : driver.refusal(error)
  if (code === null || errorName(code) === 'LOCAL') throw error
  return errorName(code)
}

const failure = (driver, error) => {
  if (error instanceof Unsupported) return { unsupported: error.message }
  const code = error instanceof Refused ? error.code : driver.refusal(error)
  const name = code === null ? 'LOCAL' : errorName(code)
  if (name === 'LOCAL') console.error(error)
  return { error: name, message: `${error.name ?? 'Error'}: ${error.message}` }
}

const withinPatience = (promise, name) => {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${name} took too long`)), LAST_PATIENCE_MS)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

const answer = async (driver, line) => {
  const { call, ...given } = JSON.parse(line)
  try {
    const work = driver.calls[call]
    if (!work) throw new Unsupported(`the library has no call for ${call}`)
    return { ok: (await withinPatience(work(given), call)) ?? null }
  } catch (error) {
    return failure(driver, error)
  }
}

/** Answer the calls on standard input until it ends. */
const serve = async driver => {
  const write = process.stdout.write.bind(process.stdout)
  process.stdout.write = process.stderr.write.bind(process.stderr) // answers alone go there
  process.on('unhandledRejection', error => console.error('unhandled:', error))
  for await (const line of readline.createInterface({ input: process.stdin })) {
    write(`${JSON.stringify(await answer(driver, line))}\n`)
  }
  await withinPatience(driver.close(), 'close').catch(error => console.error(error))
  process.exit(0)
}

const encoded = bytes => (bytes === null || bytes === undefined ? null : Buffer.from(bytes).toString('base64'))
const decoded = text => (text === null || text === undefined ? null : Buffer.from(text, 'base64'))
const pause = ms => new Promise(resolve => setTimeout(resolve, ms))

module.exports = {
  PATIENCE_MS,
  Refused,
  Unsupported,
  decoded,
  encoded,
  errorName,
  nameOf,
  outcome,
  pause,
  serve
}
