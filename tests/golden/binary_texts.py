"""What the golden documents say whose formats the tests write by themselves."""
# ruff: noqa: E501, ISC004

_HEAD = '<html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body>'
CHAPTERS = (
    f"{_HEAD}<h1>How tides are told</h1><p>A table gives, for each day, the hours of high and low water and their "
    "heights above the datum of the chart.</p><h2>Heights</h2><p>Heights are in metres. Add the height to the depth "
    "that the chart shows, and you have the depth of the water at that hour.</p><ul><li>Springs come two days after "
    "the full and the new moon.</li><li>Neaps come between them, and are lower.</li></ul>"
    "<h2>Hours</h2><p>Hours are those of the standard time.<a id='n1'/> In summer, add one.</p>"
    "<table><thead><tr><th>Day</th><th>High</th><th>Low</th></tr></thead><tbody><tr><td>1 May</td><td>03:10 4.2 m</td>"
    "<td>09:25 0.8 m</td></tr><tr><td>2 May</td><td>03:55 4.4 m</td><td>10:10 0.6 m</td></tr></tbody></table></body></html>",
    f"{_HEAD}<p>No table knows the weather. A strong wind from the sea holds the water up, and a high barometer presses "
    "it down by a centimetre for each hectopascal.</p><pre>height = table + (1013 - pressure) / 100</pre></body></html>",
)

MANUAL = """
<text:p text:style-name="Title">Bilge pump, model 40</text:p>
<text:h text:outline-level="1">Before the first start</text:h>
<text:p>The pump is delivered dry. Fill its housing with water through the upper plug<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>Sea water will do.</text:p></text:note-body></text:note> and turn the shaft by hand until no more air comes out.</text:p>
<text:list><text:list-item><text:p>Close the outlet.</text:p></text:list-item><text:list-item><text:p>Open the inlet:</text:p>
<text:list><text:list-item><text:p>first the sea cock,</text:p></text:list-item><text:list-item><text:p>then the strainer.</text:p></text:list-item></text:list></text:list-item></text:list>
<text:h text:outline-level="2">Electric connection</text:h>
<text:p>The motor takes 12 volts. Its fuse must not be stronger than the table says.</text:p>
<table:table><table:table-header-rows><table:table-row><table:table-cell><text:p>Cable</text:p></table:table-cell><table:table-cell><text:p>Fuse</text:p></table:table-cell></table:table-row></table:table-header-rows>
<table:table-row><table:table-cell><text:p>2.5 mm²</text:p></table:table-cell><table:table-cell><text:p>10 A</text:p></table:table-cell></table:table-row>
<table:table-row><table:table-cell><text:p>4 mm²</text:p></table:table-cell><table:table-cell><text:p>16 A</text:p></table:table-cell></table:table-row></table:table>
<text:h text:outline-level="1">When it does not draw</text:h>
<text:p>Look for air in the inlet: a clamp that is loose, or a strainer that stands above the water.</text:p>
"""

LETTER = (
    "Dear berth holders,\r\n\r\nfrom the first of November the outer pontoon is closed. Boats that stay in the water\r\n"
    "move to the inner basin, where the office names each its place.\r\n\r\nPlease bring:\r\n\r\n- two lines of at least "
    "ten metres\r\n- four fenders\r\n- the insurance certificate\r\n\r\n> Can we keep shore power over the winter?\r\n\r\n"
    "Yes, on the inner basin. It is metered.\r\n\r\n-- \r\nThe harbour office\r\nQuay 2\r\n"
)
