import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.ByteBufferOutputStream;

/**
 * Builds and reads record batches with Kafka's own classes, for tests in another language.
 *
 * A request is 'B' (build) or 'R' (read) with a body; an answer is one status byte (0 = fine), a length and a body,
 * or 1 and a message. What the bodies hold can be read off the methods below.
 */
public class RecordBridge {
    private static final DataInputStream IN = new DataInputStream(System.in);
    private static final DataOutputStream OUT = new DataOutputStream(new BufferedOutputStream(System.out));

    public static void main(String[] arguments) throws IOException {
        while (true) {
            int command;
            byte[] request;
            try {
                command = IN.readByte();
                request = readBytes(IN);
            } catch (EOFException end) {
                return;
            }
            byte[] answer;
            int status = 0;
            try {
                DataInputStream body = new DataInputStream(new java.io.ByteArrayInputStream(request));
                answer = command == 'B' ? build(body) : read(request);
            } catch (Exception error) {
                status = 1;
                answer = error.toString().getBytes(StandardCharsets.UTF_8);
            }
            OUT.writeByte(status);
            writeBytes(OUT, answer);
            OUT.flush();
        }
    }

    private static byte[] build(DataInputStream in) throws IOException {
        CompressionType codec = CompressionType.forId(in.readByte());
        TimestampType timestampType = TimestampType.forName(in.readByte() == 0 ? "CreateTime" : "LogAppendTime");
        long baseOffset = in.readLong();
        long appendTime = in.readLong();
        long producerId = in.readLong();
        short producerEpoch = in.readShort();
        int baseSequence = in.readInt();
        boolean isTransactional = in.readBoolean();
        boolean isControl = in.readBoolean();
        int leaderEpoch = in.readInt();
        long deleteHorizon = in.readLong();
        ByteBufferOutputStream stream = new ByteBufferOutputStream(1024);
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(stream, RecordBatch.MAGIC_VALUE_V2,
            Compression.of(codec).build(), timestampType, baseOffset, appendTime, producerId, producerEpoch,
            baseSequence, isTransactional, isControl, leaderEpoch, Integer.MAX_VALUE, deleteHorizon);
        int count = in.readInt();
        for (int i = 0; i < count; i++) {
            long offset = in.readLong();
            SimpleRecord record = new SimpleRecord(in.readLong(), readBytes(in), readBytes(in), readHeaders(in));
            if (isControl)
                builder.appendControlRecordWithOffset(offset, record);
            else
                builder.appendWithOffset(offset, record);
        }
        ByteBuffer built = builder.build().buffer();
        byte[] bytes = new byte[built.remaining()];
        built.get(bytes);
        return bytes;
    }

    private static byte[] read(byte[] bytes) throws IOException {
        ByteArrayOutputStream buffer = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(buffer);
        List<MutableRecordBatch> batches = new ArrayList<>();
        MemoryRecords.readableRecords(ByteBuffer.wrap(bytes)).batches().forEach(batches::add);
        out.writeInt(batches.size());
        for (MutableRecordBatch batch : batches) {
            batch.ensureValid();
            out.writeLong(batch.baseOffset());
            out.writeLong(batch.lastOffset());
            out.writeLong(batch.nextOffset());
            out.writeInt(batch.sizeInBytes());
            out.writeLong(batch.maxTimestamp());
            out.writeByte(batch.timestampType().id);
            out.writeByte(batch.compressionType().id);
            out.writeLong(batch.producerId());
            out.writeShort(batch.producerEpoch());
            out.writeInt(batch.baseSequence());
            out.writeInt(batch.lastSequence());
            out.writeBoolean(batch.isTransactional());
            out.writeBoolean(batch.isControlBatch());
            out.writeInt(batch.partitionLeaderEpoch());
            out.writeLong(batch.deleteHorizonMs().orElse(-1));
            out.writeLong(batch.checksum());
            out.writeInt(batch.countOrNull());
            for (Record record : batch) {
                out.writeLong(record.offset());
                out.writeLong(record.timestamp());
                writeBuffer(out, record.key());
                writeBuffer(out, record.value());
                out.writeInt(record.headers().length);
                for (Header header : record.headers()) {
                    writeBytes(out, header.key().getBytes(StandardCharsets.UTF_8));
                    writeBytes(out, header.value());
                }
            }
        }
        return buffer.toByteArray();
    }

    private static Header[] readHeaders(DataInputStream in) throws IOException {
        Header[] headers = new Header[in.readInt()];
        for (int i = 0; i < headers.length; i++)
            headers[i] = new RecordHeader(new String(readBytes(in), StandardCharsets.UTF_8), readBytes(in));
        return headers;
    }

    private static byte[] readBytes(DataInputStream in) throws IOException {
        int length = in.readInt();
        if (length < 0)
            return null;
        byte[] bytes = new byte[length];
        in.readFully(bytes);
        return bytes;
    }

    private static void writeBuffer(DataOutputStream out, ByteBuffer buffer) throws IOException {
        byte[] bytes = null;
        if (buffer != null) {
            bytes = new byte[buffer.remaining()];
            buffer.duplicate().get(bytes);
        }
        writeBytes(out, bytes);
    }

    private static void writeBytes(DataOutputStream out, byte[] bytes) throws IOException {
        out.writeInt(bytes == null ? -1 : bytes.length);
        if (bytes != null)
            out.write(bytes);
    }
}
