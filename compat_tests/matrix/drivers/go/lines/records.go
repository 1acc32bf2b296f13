package lines

import (
	"encoding/json"
	"fmt"
)

// Header is a header of a record: a pair of a name and bytes or null.
type Header struct {
	Name  string
	Value []byte
}

// MarshalJSON writes the pair.
func (h Header) MarshalJSON() ([]byte, error) { return json.Marshal([]any{h.Name, h.Value}) }

// UnmarshalJSON reads the pair.
func (h *Header) UnmarshalJSON(data []byte) error {
	var pair []json.RawMessage
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return fmt.Errorf("a header is a pair, not %s", data)
	}
	if err := json.Unmarshal(pair[0], &h.Name); err != nil {
		return err
	}
	return json.Unmarshal(pair[1], &h.Value)
}

// Record is what produce is told to write.
type Record struct {
	Partition *int32   `json:"partition"`
	Key       []byte   `json:"key"`
	Value     []byte   `json:"value"`
	Headers   []Header `json:"headers"`
	Timestamp *int64   `json:"timestamp"`
}

// Production is what produce is told. Acks are -1 unless said otherwise.
type Production struct {
	Topic           string   `json:"topic"`
	Records         []Record `json:"records"`
	Acks            *int16   `json:"acks"`
	Codec           string   `json:"codec"`
	Idempotent      bool     `json:"idempotent"`
	MaxRequestBytes int      `json:"max_request_bytes"`
}

// Produced is where a record went, or why it did not.
type Produced struct {
	Partition int32
	Offset    int64
	Error     *string
}

// MarshalJSON writes either the place or the error.
func (p Produced) MarshalJSON() ([]byte, error) {
	if p.Error != nil {
		return json.Marshal(map[string]string{"error": *p.Error})
	}
	return json.Marshal(map[string]int64{"partition": int64(p.Partition), "offset": p.Offset})
}

// Fetching is what fetch is told; without a count, all up to the end is to be read.
type Fetching struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Count     *int   `json:"count"`
	Isolation string `json:"isolation"`
}

// Fetched is a record that fetch read.
type Fetched struct {
	Offset    int64    `json:"offset"`
	Key       []byte   `json:"key"`
	Value     []byte   `json:"value"`
	Headers   []Header `json:"headers"`
	Timestamp int64    `json:"timestamp"`
}

// Listing is what list_offsets is told.
type Listing struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	At        any    `json:"at"`
}

// Timestamp is what the ListOffsets request has for the place that was asked for.
func (l Listing) Timestamp() (int64, error) {
	switch at := l.At.(type) {
	case float64:
		return int64(at), nil
	case string:
		special := map[string]int64{"latest": -1, "earliest": -2, "max_timestamp": -3}
		if timestamp, known := special[at]; known {
			return timestamp, nil
		}
	}
	return 0, Unsupported(fmt.Sprintf("no offset is listed at %v", l.At))
}

// Listed is an offset with its time.
type Listed struct {
	Offset    int64 `json:"offset"`
	Timestamp int64 `json:"timestamp"`
}

// Epoch is what leader_epoch_end is told.
type Epoch struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Epoch     int32  `json:"epoch"`
}
