"""Refused filters: for each refusal, in the order of the tables, the texts that must meet it."""

from oneroster_filter.syntax_refusals import ClausePart

SYNTAX_EXAMPLES: dict[ClausePart, list[tuple[str, tuple[str, ...]]]] = {
    ClausePart.FIELD: [
        ("empty", ("", "   ")),
        ("white-space", ("\ta='x'", "a='x' AND \tb='y'", "\n")),
        ("clause-missing", ("a='x' AND ", "a='x' OR  ", "a='x' AND", "a='x' OR")),
        ("clause-missing", ("a='x' OR OR b='y'", "a='x' AND OR b='y'", "AND a='x'", "or a='x'", "AND")),
        ("parenthesis", ("(a='x')", "a='x' AND (b='y' OR c='z')", "(a)='x'", "a='x' AND (b)='y'")),
        ("value-first", ("'active'=status", "\"status\"='active'", "a='x' AND 'y'=b")),
        ("field-missing", ("='x'", "a='x' AND !='y'")),
        ("name-missing", (".a='x'", "a='x' OR .b='y'")),
        ("encoded", ("%20a='x'", "%73tatus='x'")),
        ("bad-field-character", ("é='x'", "$a='x'", "[a]='x'", "`a`='x'")),
    ],
    ClausePart.OPERATOR: [
        ("operator-missing", ("status", "a='x' AND status", "status ", "a")),
        ("white-space", ("a\t='x'", "a\n='x'", "status\n")),
        ("name-missing", ("a.='x'", "a..b='x'", "a.")),
        ("operator-missing", ("status'active'", "a 'x'")),
        ("encoded", ("status%3D'active'", "status%3D%27active%27", "a%20=%20'x'")),
        ("negation", ("NOT status='active'", "a='x' OR not b='y'", "NOT (a='x')", "NOT(a='x')")),
        ("function", ("a('x')", "contains(name,'x')", "startswith(name, 'x')='y'")),
        ("bad-field-character", ("naïve='x'", "ståtus='x'", "a='x' AND größe='y'")),
        ("absence", ("status is null", "a IS NOT NULL", "a='x' AND b is empty", "email pr", "email exists")),
        ("space-in-name", ("family name='x'", "family name = 'x'", "a='x' OR family name~'y'")),
        ("operator-in-words", ("status eq 'active'", "name LIKE 'x'", "a in ('x','y')", "a contains 'x'")),
        (
            "unknown-operator",
            ("a:'x'", "a*'x'", "a,b='x'", "a≠'x'", "a!'x'", "a!~'x'"),
        ),
    ],
    ClausePart.VALUE: [
        ("value-missing", ("a=", "a = ", "a='x' AND b>=")),
        ("white-space", ("a=\t'x'", "a=\n")),
        ("quote-open", ("a='x", "a='", "a='''", "a='O''Hara", "a='x' AND b='y", "a='it''")),
        ("other-quotes", ('a="x"', "a=“x”", "a=‘x’", "a=`x`")),
        ("unknown-operator", ("a=='x'", "a<>'x'", "a=>'x'", "a=<'x'", "a~='x'", "a= ='x'", "a>>'x'")),
        ("encoded", ("a=%27x%27", "a=%20'x'")),
        ("absence", ("a=null", "a != NULL", "a=None")),
        (
            "value-unquoted",
            (
                "a=active",
                "a=1",
                "a>2026-01-01",
                "a=true",
                "a=é",
                "a=(x)",
                "a= x",
                "a=N'x'",
                "a=-1",
                "a=.5",
            ),
        ),
    ],
    ClausePart.JOIN: [
        ("white-space", ("a='x'\n", "a='x' \t", "a='x'\r\n", "a='x'\N{NO-BREAK SPACE}AND b='y'")),
        (
            "join-spaces",
            ("a='x'OR", "a='x'AND b='y'", "a='x' AND\tb='y'", "a='x' ANDb='y'", "a='x' OR'y'", "a='x'OR(b='y')"),
        ),
        ("quote-inside", ("familyName='O'Brien'", "a='x'y", "a='x'ANDy'", "a='x'\"", "a='it's' AND b='y'")),
        ("join-case", ("a='x' and b='y'", "a='x' Or b='y'", "a='x' or", "a='x' oR\tb='y'")),
        ("join-symbol", ("a='x' && b='y'", "a='x',b='y'", "a='x';", "a='x' | b='y'", "a='x'+AND+b='y'")),
        ("parenthesis", ("a='x')", "a='x' )")),
        ("encoded", ("a='x' %20AND%20b='y'",)),
        (
            "join-missing",
            ("a='x' b='y'", "a='x' XOR b='y'", "a='x' NOT b='y'", "a='x' =", "a='x' 'y'", "a='x' ."),
        ),
    ],
}
"""The texts of each row of the parser: its code, and its texts."""

EXAMPLES: dict[str, tuple[str, ...]] = {
    "nul": ("a='x\x00'", "\x00", "a\x00='x'", "a='x' AND\x00b='y'"),
    "not-unicode": ("a='\ud800'", "a='\udfff\ud800'"),
    "too-many-clauses": (
        "status='active' AND role='student' AND familyName='x'",
        "status='active' OR role='student' AND familyName='x' OR",
    ),
    "unknown-field": (
        "familyname='x'",
        "shoeSize='42'",
        "class.title='x'",
        "class='x'",
        "metadatum.a='x'",
        "metadata='x'",
    ),
    "operator-not-taken": (
        "enabledUser~'true'",
        "dateLastModified~'2026'",
        "birthDate~'2010'",
        "grades>'09'",
        "grades<='09'",
    ),
    "not-a-flag": ("enabledUser='yes'", "enabledUser='True'", "enabledUser='1'", "enabledUser=''"),
    "not-an-instant": (
        "dateLastModified>'yesterday'",
        "dateLastModified>'2026-11-21T02:00:00 01:00'",
        "dateLastModified>'2026-02-30'",
        "dateLastModified>'2026-11-21T24:00:00Z'",
        "dateLastModified>'2026-11-21T23:59:60Z'",
        "dateLastModified>'2026-11-21T02:00:00+25:00'",
        "dateLastModified>'0001-01-01T00:00:00+01:00'",
        "dateLastModified='9999-12-31T23:59:59-01:00'",
        "dateLastModified>'0000-01-01'",
        "dateLastModified>'20261121T020000Z'",
        "dateLastModified>'2026-11-21T02:0000Z'",
        "dateLastModified>'2026-11-21T02:00:0000Z'",
        "dateLastModified>'2026-11-21T02:00:00.Z'",
        "dateLastModified>'2026-11-21T02Z'",
        "dateLastModified>'2026-W47-6'",
        "dateLastModified>'٢٠٢٦-11-21'",
        "dateLastModified>''",
    ),
    "not-a-day": ("birthDate='2026-11-21T00:00:00Z'", "birthDate<'2010'", "birthDate='2011-02-29'", "birthDate=''"),
    "empty-item": ("grades=''", "grades~'09,'", "grades=',09'", "grades~'09,,10'", "grades!=' '"),
}
"""The texts of the other refusals, by code, with the field types of `samples.py`."""
