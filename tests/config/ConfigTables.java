// Prints Kafka's own tables of configs as JSON lines, for the test beside this file.

import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.DynamicConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

public class ConfigTables {
    static String quoted(String text) {
        return text == null ? "null" : "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }

    static void print(String table, Map<String, ConfigDef.ConfigKey> keys) {
        for (ConfigDef.ConfigKey key : new TreeMap<>(keys).values()) {
            String value = key.hasDefault() ? ConfigDef.convertToString(key.defaultValue, key.type) : null;
            System.out.println("{\"table\":" + quoted(table)
                + ",\"name\":" + quoted(key.name)
                + ",\"type\":" + quoted(key.type.toString())
                + ",\"default\":" + quoted(value)
                + ",\"required\":" + !key.hasDefault()
                + ",\"importance\":" + quoted(key.importance.toString())
                + ",\"internal\":" + key.internalConfig
                + ",\"valid\":" + quoted(key.validator == null ? null : key.validator.toString())
                + "}");
        }
    }

    public static void main(String[] arguments) {
        print("broker", kafka.server.KafkaConfig.configDef().configKeys());
        print("dynamic", DynamicConfig.Broker.configKeys());
        print("topic", LogConfig.configKeys());
        print("group", GroupConfig.CONFIG_DEF.configKeys());
        print("client metrics", ClientMetricsConfigs.configDef().configKeys());
        DynamicBrokerConfig.dynamicConfigUpdateModes().forEach((name, mode) -> System.out.println(
            "{\"table\":\"mode\",\"name\":" + quoted(name) + ",\"mode\":" + quoted(mode) + "}"));
        ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.forEach((name, synonyms) -> synonyms.forEach(
            synonym -> System.out.println("{\"table\":\"synonym\",\"name\":" + quoted(name)
                + ",\"synonym\":" + quoted(synonym.name())
                + ",\"one\":" + quoted(synonym.converter().apply("1")) + "}")));
    }
}
