package lines

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// What franz-go calls otherwise than Kafka does.
var renamed = map[int16]string{6: "NOT_LEADER_OR_FOLLOWER"}

// NameOf is Kafka's name of an error code other than 0. Sarama has no such names, so franz-go's table serves both.
func NameOf(code int16) string {
	if name, found := renamed[code]; found {
		return name
	}
	known := kerr.TypedErrorForCode(code)
	if known == nil || known.Code != code {
		return fmt.Sprintf("CODE_%d", code)
	}
	return known.Message
}

// Refusal is the error that a code in an answer stands for, nil for 0.
func Refusal(code int16, message *string) error {
	if code == 0 {
		return nil
	}
	refused := Refused{Name: NameOf(code)}
	if message != nil {
		refused.Message = *message
	}
	return refused
}
