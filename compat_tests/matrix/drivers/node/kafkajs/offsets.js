// Offsets of partitions, and of groups in them.
'use strict'

const { Refused, Unsupported } = require('../serving')

const UNKNOWN_TOPIC_OR_PARTITION = 3

const offsetCalls = driver => {
  const list_offsets = async ({ topic, partition, at }) => {
    const admin = await driver.admin()
    if (at === 'max_timestamp') throw new Unsupported('ListOffsets of the library is older than max_timestamp')
    const bounds = (await admin.fetchTopicOffsets(topic)).find(found => found.partition === partition)
    if (!bounds) throw new Refused(UNKNOWN_TOPIC_OR_PARTITION, `no partition ${partition} in the metadata`)
    if (at === 'earliest') return { offset: Number(bounds.low), timestamp: -1 }
    if (at === 'latest') return { offset: Number(bounds.high), timestamp: -1 }
    const found = await admin.fetchTopicOffsetsByTimestamp(topic, at)
    const { offset } = found.find(each => each.partition === partition)
    // Where nothing is that late the library says the end of the partition, at which no record can be.
    return { offset: offset === bounds.high ? -1 : Number(offset), timestamp: -1 }
  }

  const committed = async ({ group, topic, partitions }) => {
    const admin = await driver.admin()
    const [found] = await admin.fetchOffsets({ groupId: group, topics: [topic] })
    const offsets = new Map((found?.partitions ?? []).map(each => [each.partition, Number(each.offset)]))
    return Object.fromEntries(partitions.map(partition => [partition, offsets.get(partition) ?? -1]))
  }

  const alter_group_offsets = async ({ group, offsets }) => {
    const admin = await driver.admin()
    for (const [topic, wanted] of Object.entries(offsets)) {
      const partitions = Object.entries(wanted).map(([partition, offset]) => ({
        partition: Number(partition),
        offset: String(offset)
      }))
      try {
        await admin.setOffsets({ groupId: group, topic, partitions })
      } catch (error) {
        if (/must have no running instances/.test(error.message)) {
          throw new Unsupported('the library itself refuses to set offsets of a group with members')
        }
        throw error
      }
    }
  }

  return { list_offsets, committed, alter_group_offsets }
}

module.exports = { offsetCalls }
