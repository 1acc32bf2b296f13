// Groups as an admin sees them.
'use strict'

const { AssignerProtocol } = require('kafkajs')
const { nameOf } = require('../serving')

const memberOf = ({ clientId, memberAssignment }) => {
  const decoded = memberAssignment.length > 0 ? AssignerProtocol.MemberAssignment.decode(memberAssignment) : null
  return { client_id: clientId, instance_id: null, assignment: decoded?.assignment ?? {} }
}

const groupCalls = driver => {
  const list_groups = async () => {
    const { groups } = await (await driver.admin()).listGroups()
    return Object.fromEntries(groups.map(({ groupId }) => [groupId, { state: null, type: null }]))
  }

  const describe_group = async ({ group }) => {
    const { groups } = await (await driver.admin()).describeGroups([group])
    const { state, protocol, members } = groups[0]
    return { state, type: null, protocol, members: members.map(memberOf) }
  }

  const delete_groups = async ({ groups }) => {
    const admin = await driver.admin()
    const outcomes = Object.fromEntries(groups.map(group => [group, null]))
    try {
      await admin.deleteGroups(groups)
    } catch (error) {
      const refused = error.groups ?? error.cause?.groups
      if (!refused) throw error
      for (const { groupId, error: why } of refused) outcomes[groupId] = nameOf(driver, why)
    }
    return outcomes
  }

  return { list_groups, describe_group, delete_groups }
}

module.exports = { groupCalls }
