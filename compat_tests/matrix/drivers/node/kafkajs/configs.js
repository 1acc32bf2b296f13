// Configs and ACLs. The library has the old AlterConfigs alone, which replaces all that was set before: what is to stay
// is read first and sent again, as its users do.
'use strict'

const { AclOperationTypes, AclPermissionTypes, AclResourceTypes, ConfigResourceTypes } = require('kafkajs')
const { ConfigSource, ResourcePatternTypes } = require('kafkajs')

const KINDS = { topic: ConfigResourceTypes.TOPIC, broker: ConfigResourceTypes.BROKER }
const SET_HERE = { topic: ConfigSource.TOPIC_CONFIG, broker: ConfigSource.DYNAMIC_BROKER_CONFIG }

const configCalls = driver => {
  const entries = async (kind, name) => {
    const admin = await driver.admin()
    const { resources } = await admin.describeConfigs({
      resources: [{ type: KINDS[kind], name }],
      includeSynonyms: false
    })
    return resources[0].configEntries
  }

  const describe_configs = async ({ kind, name }) => {
    const found = {}
    for (const entry of await entries(kind, name)) {
      found[entry.configName] = {
        value: entry.configValue,
        default: entry.isDefault,
        read_only: entry.readOnly,
        sensitive: entry.isSensitive
      }
    }
    return found
  }

  const alter_configs = async ({ kind, name, set, delete: removed }) => {
    const kept = (await entries(kind, name)).filter(entry => entry.configSource === SET_HERE[kind])
    const wanted = new Map(kept.map(entry => [entry.configName, entry.configValue]))
    for (const [key, value] of Object.entries(set ?? {})) wanted.set(key, value)
    for (const key of removed ?? []) wanted.delete(key)
    const configEntries = [...wanted].map(([key, value]) => ({ name: key, value }))
    const admin = await driver.admin()
    await admin.alterConfigs({ validateOnly: false, resources: [{ type: KINDS[kind], name, configEntries }] })
  }

  const describe_acls = async () => {
    const { resources } = await (await driver.admin()).describeAcls({
      resourceType: AclResourceTypes.ANY,
      resourcePatternType: ResourcePatternTypes.ANY,
      operation: AclOperationTypes.ANY,
      permissionType: AclPermissionTypes.ANY
    })
    return resources
  }

  return { describe_configs, alter_configs, describe_acls }
}

module.exports = { configCalls }
