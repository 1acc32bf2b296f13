// The driver of franz-go: kgo for records, groups and transactions, kadm for what an administrator does, and kmsg,
// the library's requests as they are, where kadm leaves something out of the answer that the cases ask for.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
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
	d := &driver{
		bootstrap: lines.Address(),
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
	d.lines = &lines.Driver{Library: d, Refusal: refusal, Close: d.close}
	d.lines.Serve()
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

func (d *driver) Version(lines.None) (any, error) {
	return lines.Version("franz-go", "github.com/twmb/franz-go")
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
