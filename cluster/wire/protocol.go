package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/clip"
)

// Protocol is the number of what a leader and a host say to each other: the routes, the JSON of bodies and headers, and
// the arguments with which launches start the program fairlead of the host. A connection has one, which both sides know:
// the highest that both speak (cluster/link).
//
// Each version of Fairlead speaks its own protocol and the one before. To change something, raise newest. A new field
// has the tag `since` with that number and is optional: it is left out for a side that speaks an older protocol, and
// refused from one. A new route, code or argument is used only if the connection's number allows it. What was added
// with a number that no version speaks any longer loses its tag.
type Protocol int

// newest is a text, because tests build programs of an older protocol with -ldflags "-X …/cluster/wire.newest=1".
var newest = "2" //nolint:gochecknoglobals // see above

// Newest is the highest protocol that this program speaks.
func Newest() Protocol {
	n, err := strconv.Atoi(newest)
	if err != nil || n < 1 {
		panic("wire: newest is not a number: " + newest)
	}
	return Protocol(n)
}

// Speaks lists the protocols that this program speaks, the newest first.
func Speaks() []Protocol {
	is := Newest()
	if is == 1 {
		return []Protocol{is}
	}
	return []Protocol{is, is - 1}
}

func (p Protocol) String() string { return strconv.Itoa(int(p)) }

// words lists protocols for people.
func words(all []Protocol) string {
	var words []string
	for _, p := range all {
		words = append(words, p.String())
	}
	return strings.Join(words, " and ")
}

// VersionsApart says why a host and a leader have no protocol in common, and what to do.
func VersionsApart(host string, its, leaders []Protocol) string {
	switch {
	case len(its) == 0:
		return "host " + host + " does not name its protocols; install the leader's version of Fairlead there"
	case slices.Max(its) < slices.Max(leaders):
		return fmt.Sprintf("host %s is more than one version older than the leader; install the leader's version of Fairlead there (protocol %s, the leader's is %s)", host, words(its), words(leaders))
	}
	return fmt.Sprintf("host %s is more than one version newer than the leader; upgrade the leader, or install its version of Fairlead there (protocol %s, the leader's is %s)", host, words(its), words(leaders))
}

// ParseProtocol reads the number of a protocol that this program speaks.
func ParseProtocol(text string) (Protocol, error) {
	for _, p := range Speaks() {
		if p.String() == text {
			return p, nil
		}
	}
	return 0, fmt.Errorf("this version of Fairlead does not support protocol %q between hosts; it supports %s", clip.Text(text, 20), words(Speaks()))
}

type protocolKey struct{}

// With notes the protocol of the connection of a request.
func With(ctx context.Context, p Protocol) context.Context {
	return context.WithValue(ctx, protocolKey{}, p)
}

// ProtocolIn is what With noted.
func ProtocolIn(ctx context.Context) Protocol {
	if p, is := ctx.Value(protocolKey{}).(Protocol); is {
		return p
	}
	return Newest()
}

// ProtocolOf is that of the connection on which a client sends requests.
func ProtocolOf(client *http.Client) Protocol {
	if of, is := client.Transport.(interface{ Protocol() Protocol }); is {
		return of.Protocol()
	}
	return Newest()
}

// Encode is a value as JSON, without what a protocol does not have.
func Encode(p Protocol, value any) ([]byte, error) {
	if value != nil {
		has, _ := p.of(reflect.ValueOf(value))
		value = has.Interface()
	}
	return json.Marshal(value)
}

// of returns what a protocol has of a value, and the names of the other fields that were set. Values in a map are
// not looked at: none of them has a field with a number.
func (p Protocol) of(v reflect.Value) (has reflect.Value, later []string) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || v.Elem().Kind() != reflect.Struct {
			return v, nil
		}
		part, later := p.of(v.Elem())
		if len(later) == 0 {
			return v, nil
		}
		to := reflect.New(v.Type().Elem())
		to.Elem().Set(part)
		return to, later
	case reflect.Slice:
		if kind := v.Type().Elem().Kind(); kind != reflect.Struct && kind != reflect.Pointer {
			return v, nil
		}
		to := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			part, more := p.of(v.Index(i))
			to.Index(i).Set(part)
			later = append(later, more...)
		}
		if len(later) == 0 {
			return v, nil
		}
		return to, later
	case reflect.Struct:
		to := reflect.New(v.Type()).Elem()
		to.Set(v)
		for i := range v.NumField() {
			switch f := v.Type().Field(i); {
			case !f.IsExported():
			case since(f) > p:
				if !v.Field(i).IsZero() {
					later = append(later, nameOf(f))
				}
				to.Field(i).SetZero()
			default:
				part, more := p.of(v.Field(i))
				to.Field(i).Set(part)
				later = append(later, more...)
			}
		}
		return to, later
	}
	return v, nil
}

// since is the first protocol that has a field.
func since(f reflect.StructField) Protocol {
	n, _ := strconv.Atoi(f.Tag.Get("since")) // 0: all have it
	return Protocol(n)
}

func nameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" {
		return f.Name
	}
	return name
}
