package lines

// None is for calls without arguments.
type None struct{}

// Topics names topics; nil means all.
type Topics struct {
	Topics []string `json:"topics"`
}

// Broker is a broker in the answer to metadata.
type Broker struct {
	ID   int32  `json:"id"`
	Host string `json:"host"`
	Port int32  `json:"port"`
}

// Partition is a partition in the answer to metadata.
type Partition struct {
	Partition int32   `json:"partition"`
	Leader    int32   `json:"leader"`
	Replicas  []int32 `json:"replicas"`
	ISR       []int32 `json:"isr"`
}

// Topic is a topic in the answer to metadata.
type Topic struct {
	Error      *string     `json:"error"`
	Partitions []Partition `json:"partitions"`
}

// Metadata is the answer to metadata.
type Metadata struct {
	ClusterID  string           `json:"cluster_id"`
	Controller *int32           `json:"controller"`
	Brokers    []Broker         `json:"brokers"`
	Topics     map[string]Topic `json:"topics"`
}

// NewTopic is a topic that create_topics is to make.
type NewTopic struct {
	Name        string             `json:"name"`
	Partitions  int32              `json:"partitions"`
	Replication int16              `json:"replication"`
	Configs     map[string]*string `json:"configs"`
}

// NewTopics is what create_topics is told.
type NewTopics struct {
	Topics       []NewTopic `json:"topics"`
	ValidateOnly bool       `json:"validate_only"`
}

// Totals is what create_partitions is told.
type Totals struct {
	Topics map[string]int32 `json:"topics"`
}

// Resource is what has configs; Set and Delete are for alter_configs.
type Resource struct {
	Kind   string            `json:"kind"`
	Name   string            `json:"name"`
	Set    map[string]string `json:"set"`
	Delete []string          `json:"delete"`
}

// Config is one of the values that describe_configs tells.
type Config struct {
	Value     *string `json:"value"`
	Default   bool    `json:"default"`
	ReadOnly  bool    `json:"read_only"`
	Sensitive bool    `json:"sensitive"`
}

// Deletion is what delete_records is told.
type Deletion struct {
	Topic  string          `json:"topic"`
	Before map[int32]int64 `json:"before"`
}

// Cluster is the answer to describe_cluster.
type Cluster struct {
	ClusterID  string  `json:"cluster_id"`
	Controller *int32  `json:"controller"`
	Brokers    []int32 `json:"brokers"`
}

// LogDir is what describe_log_dirs tells of a partition.
type LogDir struct {
	Size   int64 `json:"size"`
	Lag    int64 `json:"lag"`
	Future bool  `json:"future"`
}

// TopicPartition is what describe_producers is told.
type TopicPartition struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
}

// Producer is a producer in the answer to describe_producers.
type Producer struct {
	ProducerID    int64 `json:"producer_id"`
	Epoch         int32 `json:"epoch"`
	LastSequence  int32 `json:"last_sequence"`
	InTransaction bool  `json:"in_transaction"`
}

// TransactionalIDs is what describe_transactions is told.
type TransactionalIDs struct {
	IDs []string `json:"ids"`
}

// Transaction is a transaction in the answer to describe_transactions.
type Transaction struct {
	State  string             `json:"state"`
	Topics map[string][]int32 `json:"topics"`
}

// Election is what elect_leaders is told.
type Election struct {
	Kind   string             `json:"kind"`
	Topics map[string][]int32 `json:"topics"`
}

// OrNull is an id, or null where the broker has none to tell.
func OrNull(id int32) *int32 {
	if id < 0 {
		return nil
	}
	return &id
}
