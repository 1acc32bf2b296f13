// Groups seen from outside: their offsets, and what is removed from them. How groups are listed and described differs
// between the versions of the client.

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DeleteConsumerGroupOffsetsResult;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsOptions;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

final class GroupCalls {
    private final Admin admin;

    GroupCalls(Admin admin) {
        this.admin = admin;
    }

    void register(Driver driver) {
        driver.on("committed", this::committed);
        driver.on("delete_groups", call ->
            AdminCalls.outcomes(admin.deleteConsumerGroups(call.texts("groups")).deletedGroups()));
        driver.on("alter_group_offsets", call -> {
            admin.alterConsumerGroupOffsets(call.text("group"), call.offsets("offsets")).all().get();
            return null;
        });
        driver.on("delete_group_offsets", this::deleteOffsets);
        driver.on("remove_members", this::removeMembers);
    }

    static Map<String, Object> assignmentOf(Iterable<TopicPartition> partitions) {
        Map<String, Object> found = new TreeMap<>();
        List<TopicPartition> sorted = new ArrayList<>();
        partitions.forEach(sorted::add);
        sorted.sort((one, other) -> one.partition() - other.partition());
        for (TopicPartition each : sorted) {
            @SuppressWarnings("unchecked")
            List<Integer> numbers = (List<Integer>) found.computeIfAbsent(each.topic(), topic -> new ArrayList<Integer>());
            numbers.add(each.partition());
        }
        return found;
    }

    private static Set<TopicPartition> partitions(Call call) {
        Set<TopicPartition> found = new HashSet<>();
        call.integers("partitions").forEach(each -> found.add(new TopicPartition(call.text("topic"), each)));
        return found;
    }

    private Object committed(Call call) throws Exception {
        Set<TopicPartition> wanted = partitions(call);
        ListConsumerGroupOffsetsSpec spec = new ListConsumerGroupOffsetsSpec().topicPartitions(wanted);
        Map<TopicPartition, OffsetAndMetadata> offsets = admin
            .listConsumerGroupOffsets(
                Map.of(call.text("group"), spec), new ListConsumerGroupOffsetsOptions().requireStable(true))
            .partitionsToOffsetAndMetadata(call.text("group")).get();
        Map<String, Object> found = new TreeMap<>();
        for (TopicPartition each : wanted) {
            OffsetAndMetadata offset = offsets.get(each);
            found.put(String.valueOf(each.partition()), offset == null ? -1 : offset.offset());
        }
        return found;
    }

    private Object deleteOffsets(Call call) throws Exception {
        Set<TopicPartition> wanted = partitions(call);
        DeleteConsumerGroupOffsetsResult result = admin.deleteConsumerGroupOffsets(call.text("group"), wanted);
        Map<String, Object> found = new TreeMap<>();
        for (TopicPartition each : wanted) {
            found.put(String.valueOf(each.partition()),
                AdminCalls.outcome(result.partitionResult(each), done -> null));
        }
        return found;
    }

    private Object removeMembers(Call call) throws Exception {
        Set<MemberToRemove> members = new HashSet<>();
        call.texts("instance_ids").forEach(each -> members.add(new MemberToRemove(each)));
        admin.removeMembersFromConsumerGroup(call.text("group"), new RemoveMembersFromConsumerGroupOptions(members))
            .all().get();
        return null;
    }
}
