// The driver of sarama: its producers, consumers and ClusterAdmin, and the requests of its Broker where the
// ClusterAdmin leaves something out of the answer that the cases ask for.
package main

import (
	"errors"
	"log"
	"os"
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
	if os.Getenv("SARAMA_LOG") != "" {
		sarama.Logger = log.New(os.Stderr, "", log.LstdFlags)
	}
	d := &driver{
		bootstrap: lines.Address(),
		members:   map[string]*member{},
		producers: map[string]sarama.SyncProducer{},
	}
	d.lines = &lines.Driver{Library: d, Refusal: refusal, Close: d.close}
	d.lines.Serve()
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

func (d *driver) Version(lines.None) (any, error) {
	return lines.Version("sarama", "github.com/IBM/sarama")
}

func (d *driver) close() {
	for _, producer := range d.producers {
		lines.Note("closing a producer", producer.Close())
	}
	for _, member := range d.members {
		lines.Note("closing a member", member.close())
	}
	if d.admin != nil {
		lines.Note("closing the admin", d.admin.Close())
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
