// The driver of franz-go: kgo for records, groups and transactions, kadm for what an administrator does, and kmsg,
// the library's requests as they are, where kadm leaves something out of the answer that the cases ask for.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/matrix/lines"
)

// driver holds what stays open from one call to the next.
type driver struct {
	bootstrap string
	lines     *lines.Driver
	client    *kgo.Client
	admin     *kadm.Client
	members   map[string]*member
	sharing   map[string]*shareMember
	producers map[string]*transactional
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: franzgo HOST:PORT")
		os.Exit(2)
	}
	d := &driver{
		bootstrap: os.Args[1],
		members:   map[string]*member{},
		sharing:   map[string]*shareMember{},
		producers: map[string]*transactional{},
	}
	client, err := d.newClient()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	d.client, d.admin = client, kadm.NewClient(client)
	d.lines = &lines.Driver{Calls: d.calls(), Refusal: refusal, Close: d.close}
	d.lines.Serve()
}

func (d *driver) calls() map[string]lines.Call {
	return map[string]lines.Call{
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
		"leader_epoch_end":      lines.On(d.leaderEpochEnd),
		"join":                  lines.On(d.join),
		"poll":                  lines.On(d.poll),
		"commit":                lines.On(d.commit),
		"leave":                 lines.On(d.leave),
		"committed":             lines.On(d.committed),
		"share_join":            lines.On(d.shareJoin),
		"share_poll":            lines.On(d.sharePoll),
		"share_acknowledge":     lines.On(d.shareAcknowledge),
		"share_leave":           lines.On(d.shareLeave),
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
}

// newClient makes a client of the library. It asks for metadata more often than by default, so that a case need not
// wait five minutes for a new partition, and gives up before a call has taken too long.
func (d *driver) newClient(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(d.bootstrap),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.MetadataMaxAge(time.Second),
		kgo.RetryTimeout(lines.Patience),
		kgo.RecordRetries(5),
		kgo.FetchMaxWait(500 * time.Millisecond),
	}, options...)...)
}

func (d *driver) version(lines.None) (any, error) {
	build, _ := debug.ReadBuildInfo()
	for _, module := range build.Deps {
		if module.Path == "github.com/twmb/franz-go" {
			return map[string]string{"library": "franz-go", "version": module.Version[1:]}, nil
		}
	}
	return nil, errors.New("the build does not tell the version")
}

func (d *driver) close() {
	for _, producer := range d.producers {
		producer.client.Close()
	}
	for _, member := range d.members {
		member.client.CloseAllowingRebalance()
	}
	for _, member := range d.sharing {
		member.client.Close()
	}
	d.client.Close()
}

// refusal finds the code of the protocol in an error of the library.
func refusal(err error) (int16, bool) {
	var known *kerr.Error
	if errors.As(err, &known) {
		return known.Code, true
	}
	return 0, false
}

func limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), lines.Patience)
}

// note keeps on standard error what an answer has no room for.
func note(call string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", call, err)
	}
}
