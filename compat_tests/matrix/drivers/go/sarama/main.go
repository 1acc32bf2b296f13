// The driver of sarama: its producers, consumers and ClusterAdmin, and the requests of its Broker where the
// ClusterAdmin leaves something out of the answer that the cases ask for.
package main

import (
	"errors"
	"fmt"
	"log"
	"os"
	"runtime/debug"
	"time"

	"github.com/IBM/sarama"

	"ottla/matrix/lines"
)

// driver holds what stays open from one call to the next.
type driver struct {
	bootstrap string
	lines     *lines.Driver
	client    sarama.Client
	admin     sarama.TransactionClusterAdmin
	members   map[string]*member
	producers map[string]sarama.SyncProducer
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sarama HOST:PORT")
		os.Exit(2)
	}
	if os.Getenv("SARAMA_LOG") != "" {
		sarama.Logger = log.New(os.Stderr, "", log.LstdFlags)
	}
	d := &driver{
		bootstrap: os.Args[1],
		members:   map[string]*member{},
		producers: map[string]sarama.SyncProducer{},
	}
	d.lines = &lines.Driver{Calls: d.calls(), Refusal: refusal, Close: d.close}
	d.lines.Serve()
}

func (d *driver) calls() map[string]lines.Call {
	calls := map[string]lines.Call{
		"version":               lines.On(d.version),
		"metadata":              lines.On(d.metadata),
		"create_topics":         lines.On(d.createTopics),
		"delete_topics":         lines.On(d.deleteTopics),
		"create_partitions":     lines.On(d.createPartitions),
		"describe_configs":      lines.On(d.describeConfigs),
		"alter_configs":         lines.On(d.alterConfigs),
		"delete_records":        lines.On(d.deleteRecords),
		"produce":               lines.On(d.produce),
		"fetch":                 lines.On(d.fetch),
		"list_offsets":          lines.On(d.listOffsets),
		"join":                  lines.On(d.join),
		"poll":                  lines.On(d.poll),
		"commit":                lines.On(d.commit),
		"leave":                 lines.On(d.leave),
		"committed":             lines.On(d.committed),
		"list_groups":           lines.On(d.listGroups),
		"describe_group":        lines.On(d.describeGroup),
		"delete_groups":         lines.On(d.deleteGroups),
		"alter_group_offsets":   lines.On(d.alterGroupOffsets),
		"delete_group_offsets":  lines.On(d.deleteGroupOffsets),
		"remove_members":        lines.On(d.removeMembers),
		"txn_init":              lines.On(d.txnInit),
		"txn_begin":             lines.On(d.txnBegin),
		"txn_commit":            lines.On(d.txnCommit),
		"txn_abort":             lines.On(d.txnAbort),
		"txn_send":              lines.On(d.txnSend),
		"txn_offsets":           lines.On(d.txnOffsets),
		"txn_close":             lines.On(d.txnClose),
		"describe_cluster":      lines.On(d.describeCluster),
		"describe_log_dirs":     lines.On(d.describeLogDirs),
		"describe_producers":    lines.On(d.describeProducers),
		"list_transactions":     lines.On(d.listTransactions),
		"describe_transactions": lines.On(d.describeTransactions),
		"elect_leaders":         lines.On(d.electLeaders),
		"describe_acls":         lines.On(d.describeACLs),
		"describe_features":     lines.On(d.describeFeatures),
	}
	for call, why := range map[string]string{
		"leader_epoch_end":  "sarama has no OffsetForLeaderEpoch request",
		"share_join":        "sarama has no share groups",
		"share_poll":        "sarama has no share groups",
		"share_acknowledge": "sarama has no share groups",
		"share_leave":       "sarama has no share groups",
	} {
		calls[call] = func([]byte) (any, error) { return nil, lines.Unsupported(why) }
	}
	return calls
}

// config is sarama's own with the version of Kafka that its user has to name, and with time-outs below those of a call.
// Metadata is asked for more often than every ten minutes, so that a case need not wait so long for a new partition.
func config() *sarama.Config {
	made := sarama.NewConfig()
	made.Version = sarama.V4_3_0_0
	made.Net.DialTimeout, made.Net.ReadTimeout, made.Net.WriteTimeout = lines.Patience, lines.Patience, lines.Patience
	made.Metadata.RefreshFrequency = time.Second
	made.Metadata.AllowAutoTopicCreation = false
	made.Admin.Timeout = lines.Patience
	return made
}

// connect makes the client and the admin that most calls share, once there is a call that needs them.
func (d *driver) connect() error {
	if d.client != nil {
		return nil
	}
	client, err := sarama.NewClient([]string{d.bootstrap}, config())
	if err != nil {
		return err
	}
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		return err
	}
	d.client, d.admin = client, admin.(sarama.TransactionClusterAdmin)
	return nil
}

// broker is one to send a request to by itself.
func (d *driver) broker() (*sarama.Broker, error) {
	if err := d.connect(); err != nil {
		return nil, err
	}
	broker := d.client.LeastLoadedBroker()
	if broker == nil {
		return nil, sarama.ErrOutOfBrokers
	}
	if err := broker.Open(d.client.Config()); err != nil && !errors.Is(err, sarama.ErrAlreadyConnected) {
		return nil, err
	}
	return broker, nil
}

func (d *driver) version(lines.None) (any, error) {
	build, _ := debug.ReadBuildInfo()
	for _, module := range build.Deps {
		if module.Path == "github.com/IBM/sarama" {
			return map[string]string{"library": "sarama", "version": module.Version[1:]}, nil
		}
	}
	return nil, errors.New("the build does not tell the version")
}

func (d *driver) close() {
	for _, producer := range d.producers {
		note("closing a producer", producer.Close())
	}
	for _, member := range d.members {
		note("closing a member", member.close())
	}
	if d.admin != nil {
		note("closing the admin", d.admin.Close())
	}
}

// refusal finds the code of the protocol in an error of the library.
func refusal(err error) (int16, bool) {
	var known sarama.KError
	if errors.As(err, &known) && known != sarama.ErrNoError {
		return int16(known), true
	}
	return 0, false
}

// failure is the error that a code in an answer stands for, nil for none.
func failure(code sarama.KError) error { return lines.Refusal(int16(code), nil) }

// note keeps on standard error what an answer has no room for.
func note(call string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", call, err)
	}
}
