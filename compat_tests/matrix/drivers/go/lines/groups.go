package lines

// Offsets are of partitions of topics.
type Offsets map[string]map[int32]int64

// Assignment is the partitions of each topic.
type Assignment map[string][]int32

// Joining is what join is told, and with Mode what share_join is.
type Joining struct {
	As             string   `json:"as"`
	Group          string   `json:"group"`
	Topics         []string `json:"topics"`
	Pattern        string   `json:"pattern"`
	Assignor       string   `json:"assignor"`
	Protocol       string   `json:"protocol"`
	RemoteAssignor string   `json:"remote_assignor"`
	InstanceID     string   `json:"instance_id"`
	Isolation      string   `json:"isolation"`
	SessionMs      int      `json:"session_ms"`
	Mode           string   `json:"mode"`
}

// Polling is what poll and share_poll are told.
type Polling struct {
	As     string `json:"as"`
	WaitMs int    `json:"wait_ms"`
}

// Polled is a record that a member read.
type Polled struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Key       []byte `json:"key"`
	Value     []byte `json:"value"`
}

// Poll is what a member has and read.
type Poll struct {
	Assignment Assignment `json:"assignment"`
	Records    []Polled   `json:"records"`
}

// Shared is a record that a share member acquired.
type Shared struct {
	Topic      string `json:"topic"`
	Partition  int32  `json:"partition"`
	Offset     int64  `json:"offset"`
	Value      []byte `json:"value"`
	Deliveries int32  `json:"deliveries"`
}

// Acknowledging is what share_acknowledge is told.
type Acknowledging struct {
	As      string `json:"as"`
	Records []struct {
		Topic     string `json:"topic"`
		Partition int32  `json:"partition"`
		Offset    int64  `json:"offset"`
		Kind      string `json:"kind"`
	} `json:"records"`
}

// Committing is what commit is told; without offsets all that was polled is meant.
type Committing struct {
	As      string  `json:"as"`
	Offsets Offsets `json:"offsets"`
}

// Named is a call on one that was given a name before.
type Named struct {
	As string `json:"as"`
}

// Group is what the calls on one group are told.
type Group struct {
	Group       string   `json:"group"`
	Topic       string   `json:"topic"`
	Partitions  []int32  `json:"partitions"`
	Offsets     Offsets  `json:"offsets"`
	InstanceIDs []string `json:"instance_ids"`
}

// Groups is what delete_groups is told.
type Groups struct {
	Groups []string `json:"groups"`
}

// ListedGroup is a group in the answer to list_groups.
type ListedGroup struct {
	State string  `json:"state"`
	Type  *string `json:"type"`
}

// Member is a member in the answer to describe_group.
type Member struct {
	ClientID   string     `json:"client_id"`
	InstanceID *string    `json:"instance_id"`
	Assignment Assignment `json:"assignment"`
}

// DescribedGroup is the answer to describe_group.
type DescribedGroup struct {
	State    string   `json:"state"`
	Type     *string  `json:"type"`
	Protocol string   `json:"protocol"`
	Members  []Member `json:"members"`
}

// TxnInit is what txn_init is told.
type TxnInit struct {
	As        string `json:"as"`
	ID        string `json:"id"`
	TimeoutMs int    `json:"timeout_ms"`
}

// TxnSend is what txn_send is told.
type TxnSend struct {
	As        string   `json:"as"`
	Topic     string   `json:"topic"`
	Partition int32    `json:"partition"`
	Values    [][]byte `json:"values"`
}

// TxnOffsets is what txn_offsets is told.
type TxnOffsets struct {
	As      string  `json:"as"`
	Group   string  `json:"group"`
	Offsets Offsets `json:"offsets"`
	Member  string  `json:"member"`
}
