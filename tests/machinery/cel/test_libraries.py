"""The libraries that Kubernetes adds to the language."""

from __future__ import annotations

import pytest

from sully.machinery.cel import Environment, EvaluationError
from sully.machinery.cel.library.catalogue import full_library

ENV = Environment(library=full_library())

TRUE = {
    "lists": [
        "[1, 2, 2].isSorted() && ![2, 1].isSorted()",
        "[1, 2, 3].sum() == 6 && [1.5, 2.0].sum() == 3.5",
        "[duration('1m'), duration('1s')].sum() == duration('61s')",
        "['b', 'a'].min() == 'a' && [1, 3, 2].max() == 3",
        "[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(2) == -1",
        "[1, 2, 3].slice(1, 3) == [2, 3]",
        "[[1], [2, 3]].flatten() == [1, 2, 3]",
        "[3, 1, 2].sort() == [1, 2, 3] && ['b', 'a'].sort() == ['a', 'b']",
        "[1, 2, 1].distinct() == [1, 2]",
        "lists.range(3) == [0, 1, 2]",
        "[1, 2].reverse() == [2, 1]",
        "[1, 2].first().value() == 1 && [1, 2].last().value() == 2 && ![].first().hasValue()",
    ],
    "sets": [
        "sets.contains([1, 2, 3], [3, 1]) && !sets.contains([1], [2])",
        "sets.equivalent([1, 2], [2, 1, 1])",
        "sets.intersects([1, 2], [2, 3]) && !sets.intersects([1], [2])",
    ],
    "strings": [
        "'tacocat'.charAt(3) == 'o' && 'abc'.charAt(3) == ''",
        "'tacocat'.indexOf('a', 3) == 5 && 'tacocat'.lastIndexOf('a', 3) == 1",
        "'a,b,c'.split(',', 2) == ['a', 'b,c'] && 'ab'.split('') == ['a', 'b']",
        "'aaa'.replace('a', 'b', 2) == 'bba' && ' x\\n'.trim() == 'x'",
        "['a', 'b'].join('-') == 'a-b' && 'ÀB'.lowerAscii() == 'Àb'",
        "strings.quote('a\"\\n') == '\"a\\\\\"\\\\n\"'",
        "'%s is %d and %.2f, %x'.format([dyn('a'), 3, 1.5, 255]) == 'a is 3 and 1.50, ff'",
        "'abc'.reverse() == 'cba'",
    ],
    "regex": [
        "'abc 123'.find('[0-9]+') == '123' && 'abc'.find('[0-9]') == ''",
        "'1 2 3'.findAll('[0-9]') == ['1', '2', '3'] && '1 2 3'.findAll('[0-9]', 2) == ['1', '2']",
        "'aXb'.matches('X') && !'ab'.matches('^b')",
    ],
    "urls": [
        "url('https://a.com:80/b%20c?x=1&x=2&y=').getHost() == 'a.com:80'",
        "url('https://a.com:80/b').getPort() == '80' && url('/p').getHost() == ''",
        "url('https://[::1]:80/b').getHostname() == '::1'",
        "url('https://a.com/b%20c').getEscapedPath() == '/b%20c'",
        "url('https://a.com/b c').getEscapedPath() == '/b%20c'",
        "url('https://a.com?x=1&x=2&y=a+b').getQuery() == {'x': ['1', '2'], 'y': ['a b']}",
        "isURL('https://a.com') && isURL('/path') && !isURL('a.com') && !isURL('../x')",
        "url('HTTP://a.com').getScheme() == 'http' && !isURL('http://a.com:port')",
    ],
    "addresses": [
        "ip('10.0.0.1').family() == 4 && ip('::1').isLoopback() && !isIP('10.0.0.256')",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsIP('11.0.0.1')",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !isCIDR('10.0.0.0')",
        "string(cidr('10.1.2.3/8').masked()) == '10.0.0.0/8'",
        "ip.isCanonical('::1') && !ip.isCanonical('0:0::1')",
    ],
    "formats": [
        "!format.dns1123Label().validate('my-name').hasValue()",
        "format.dns1123Label().validate('My_Name').value().size() == 1",
        "!format.named('uuid').value().validate('123e4567-e89b-12d3-a456-426614174000').hasValue()",
        "!format.named('unknown').hasValue()",
        "!format.qualifiedName().validate('a.com/b').hasValue()",
        "format.qualifiedName().validate('a/b/c').hasValue()",
        "!format.labelValue().validate('').hasValue() && format.date().validate('x').hasValue()",
        "!format.dns1123LabelPrefix().validate('a-').hasValue()",
        "format.byte().validate('%').hasValue() && !format.byte().validate('aGk=').hasValue()",
    ],
    "quantities": [
        "quantity('1Ki').compareTo(quantity('1024')) == 0 && quantity('1Ki') == quantity('1024')",
        "quantity('1').isLessThan(quantity('1001m')) && sign(quantity('-1')) == -1",
        "quantity('50k').add(quantity('1k')).asInteger() == 51000",
        "quantity('50').add(20).sub(quantity('1')).sub(1) == quantity('68')",
        "quantity('1500m').asApproximateFloat() == 1.5 && !quantity('1500m').isInteger()",
        "isQuantity('1.3Gi') && !isQuantity('one')",
    ],
    "versions": [
        "semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2",
        "semver('1.2.3-rc').patch() == 3",
        "semver('1.0.0-rc.1').isLessThan(semver('1.0.0'))",
        "semver('v1.2', true).compareTo(semver('1.2.0')) == 0",
        "isSemver('1.0.0') && !isSemver('v1.0') && isSemver('v1.0', true) && !isSemver('x', true)",
    ],
}
CASES = [(name, expression) for name, rows in TRUE.items() for expression in rows]


@pytest.mark.parametrize(("name", "expression"), CASES)
def test_true(name: str, expression: str) -> None:
    program = ENV.compile(expression)

    assert program.evaluate({}) is True
    assert program.evaluate_counted({}, 10**6)[0] is True


FAILS = {
    "min of nothing": ("[].min() == 1", "min called on empty list"),
    "a slice too long": ("[1].slice(0, 2) == []", "cannot slice(0, 2), list is length 1"),
    "a slice backwards": (
        "[1, 2].slice(2, 1) == []",
        "cannot slice(2, 1), start index must be less than or equal to end index",
    ),
    "a quantity that is not whole": (
        "quantity('1500m').asInteger() == 1",
        "cannot convert value to integer",
    ),
    "a version that is none": ("semver('x') == semver('y')", "No Major.Minor.Patch elements found"),
    "a url that is none": (
        "url('a b') == url('/')",
        'URL parse error during conversion from string: parse "a b": invalid URI for request',
    ),
    "an unknown clause": (
        "('%' + 'a').format([1]) == ''",
        'could not parse formatting clause: unrecognized formatting clause "a"',
    ),
    "too few arguments": ("('%d' + ' %d').format([1]) == ''", "index 1 out of range"),
    "a bad pattern": (
        "'a'.find('(' + 'b') == ''",
        "error parsing regexp: missing closing ): `(b`",
    ),
    "a huge range": (
        "lists.range(100000000).size() == 1",
        "list of 100000000 elements exceeds the limit of 100000",
    ),
}


@pytest.mark.parametrize(("expression", "message"), FAILS.values(), ids=FAILS.keys())
def test_fails(expression: str, message: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        ENV.compile(expression).evaluate({})

    assert str(caught.value) == message


def test_patterns_take_linear_time() -> None:
    program = ENV.compile(f"!'{'a' * 5000}!'.matches('^(a+)+$')")

    assert program.evaluate({}) is True
