import QtQuick
import QtQuick.Controls.Basic
import QtQuick.Layouts

Item {
    id: page
    property string needle: ""
    signal derived(string rule)
    ColumnLayout {
        anchors { fill: parent; margins: 16 }
        spacing: 12
        RowLayout {
            Layout.fillWidth: true
            Text { text: "History"; color: look.c.text; font.pixelSize: 20; font.bold: true; Layout.fillWidth: true }
            Field { placeholderText: "Filter"; Layout.preferredWidth: 200; onTextChanged: page.needle = text }
            PlainButton { objectName: "export"; text: "Export…"; tip: "Ctrl+S"; enabled: list.count > 0; onClicked: page.ask() }
        }
        RowLayout {
            id: exporting
            visible: false
            Layout.fillWidth: true
            spacing: 8
            Text { text: "Write it to"; color: look.c.text }
            Field {
                id: path
                objectName: "exportPath"
                mono: true
                placeholderText: "a file"
                Layout.fillWidth: true
                onAccepted: page.write()
                Keys.onEscapePressed: page.leave()
            }
            PlainButton { text: "Write"; primary: true; enabled: path.text.trim() !== ""; onClicked: page.write() }
            PlainButton { text: "Back"; tip: "Escape"; onClicked: page.leave() }
        }
        ListView {
            id: list
            objectName: "historyList"
            Layout.fillWidth: true
            Layout.fillHeight: true
            clip: true
            spacing: 1
            model: app.historyModel
            boundsBehavior: Flickable.StopAtBounds
            activeFocusOnTab: true
            Keys.onReturnPressed: if (currentItem && currentItem.sid) app.select(currentItem.sid)
            ScrollBar.vertical: ScrollBar { }
            delegate: Rectangle {
                id: row
                required property double at
                required property string command
                required property string cwd
                required property string outcome
                required property string by
                required property string reason
                required property string risk
                required property var exit_code
                required property var duration_s
                required property var sid
                required property string asker
                required property string rule
                readonly property bool shown: page.needle === "" || command.includes(page.needle) || outcome.includes(page.needle) || asker.includes(page.needle)
                visible: shown
                width: ListView.view.width - 12
                height: shown ? 46 : 0
                radius: 6
                color: hover.hovered ? look.c.hover : "transparent"
                border.width: ListView.isCurrentItem && list.activeFocus ? 2 : 0
                border.color: look.c.accent
                HoverHandler { id: hover }
                TapHandler { onTapped: if (row.sid) app.select(row.sid) }
                RowLayout {
                    anchors { fill: parent; leftMargin: 8; rightMargin: 8 }
                    spacing: 12
                    Text { text: Qt.formatDateTime(new Date(row.at * 1000), row.at > Date.now() / 1000 - 72000 ? "hh:mm:ss" : "d MMM hh:mm"); color: look.c.text_soft; font.family: "monospace"; font.pixelSize: 12 }
                    Text {
                        text: row.outcome
                        color: row.outcome === "approved" ? look.c.running : row.outcome === "declined" || row.outcome === "refused" ? look.c.failed : look.c.ended
                        font.bold: true
                        Layout.preferredWidth: 76
                    }
                    ColumnLayout {
                        Layout.fillWidth: true
                        spacing: 0
                        Text { text: row.command; textFormat: Text.PlainText; color: look.c.text; font.family: "monospace"; elide: Text.ElideRight; Layout.fillWidth: true }
                        Text { text: row.cwd + "   asked by " + row.asker + (row.by ? "   decided by " + row.by : "") + (row.reason ? "   " + row.reason : ""); textFormat: Text.PlainText; color: look.c.text_soft; font.pixelSize: 12; elide: Text.ElideRight; Layout.fillWidth: true }
                    }
                    PlainButton { visible: hover.hovered && row.rule !== ""; text: "Make a rule…"; tip: "Opens the policy with a rule that covers this"; onClicked: page.derived(row.rule) }
                    PlainButton { visible: hover.hovered && !!row.sid; text: "Output"; tip: "Shows its terminal"; onClicked: app.select(row.sid) }
                    Text {
                        visible: row.exit_code !== null && row.exit_code !== undefined
                        text: "exit " + row.exit_code + (row.duration_s ? "   " + row.duration_s.toFixed(1) + " s" : "")
                        color: row.exit_code === 0 ? look.c.text_soft : look.c.failed
                        font.family: "monospace"
                        font.pixelSize: 12
                    }
                }
            }
            Text { visible: list.count === 0; text: "What was asked, and what became of it, is listed here."; color: look.c.text_soft }
        }
    }
    Shortcut { sequence: "Ctrl+S"; enabled: app.page === "history" && list.count > 0; onActivated: page.ask() }
    Connections { target: app; function onPageChanged() { if (app.page === "history") list.forceActiveFocus() } }
    function ask() {
        path.text = app.exportPath()
        exporting.visible = true
        path.forceActiveFocus()
        path.selectAll()
    }
    function leave() {
        exporting.visible = false
        list.forceActiveFocus()
    }
    function write() {
        if (path.text.trim() === "") return
        app.exportHistory(path.text.trim())
        leave()
    }
}
